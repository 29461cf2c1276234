import { defineConfig } from 'vitest/config';

/**
 * `fast`: what one runs after every change. `long`: builds, histories, processes. `slow`: real sandboxes, kills. `npm test` runs these three.
 * `matrix`: every attack with its control, every rule taken out once, every way in which a machine can fail (`npm run test:matrix`).
 */
const matrix = [
  'test/attack/**/*.test.ts',
  'test/policy/disabled-rules.test.ts',
  'test/e2e/{bad-machine,faults,full-disk,package,profiles,restart-ceilings,secrets,start-failures,stopped-kernel}.test.ts',
];

const slow = ['test/e2e/**/*.test.ts', 'test/conformance/engine*.test.ts', 'test/conformance/placement*.test.ts'];

const long = [
  'test/policy/**/*.test.ts',
  'test/property/**/*.test.ts',
  'test/harnesses/guest/**/*.test.ts',
  'test/store/**/*.test.ts',
  'test/membrane/**/*.test.ts',
  'test/cli/{serve,launcher,commands}.test.ts',
  'test/{api,compare,sandbox,approval}/**/*.test.ts',
];

// What is measured by kills and limits should not fight other tests for the processor: one file at a time, after the fast ones.
const alone = { fileParallelism: false, testTimeout: 180_000 };

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Tests of kills and races run on whatever machine CI has: there a failed one is run once more, and the report names it as retried.
    retry: process.env.CI ? 1 : 0,
    projects: [
      {
        extends: true,
        test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: [...matrix, ...slow, ...long], sequence: { groupOrder: 0 } },
      },
      { extends: true, test: { name: 'long', include: long, exclude: matrix, sequence: { groupOrder: 0 } } },
      { extends: true, test: { name: 'slow', include: slow, exclude: matrix, ...alone, sequence: { groupOrder: 1 } } },
      { extends: true, test: { name: 'matrix', include: matrix, ...alone, sequence: { groupOrder: 1 } } },
    ],
  },
});
