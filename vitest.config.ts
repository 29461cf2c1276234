import { defineConfig } from 'vitest/config';

/** `fast`: what one runs after every change. `long`: builds, histories, processes. `slow`: real sandboxes, kills, packing. `npm test` runs all. */
const slow = [
  'test/e2e/**/*.test.ts',
  'test/attack/**/*.test.ts',
  'test/conformance/engine*.test.ts',
  'test/conformance/placement*.test.ts',
];

const long = [
  'test/policy/**/*.test.ts',
  'test/property/**/*.test.ts',
  'test/harnesses/guest/**/*.test.ts',
  'test/store/**/*.test.ts',
  'test/membrane/**/*.test.ts',
  'test/cli/{serve,launcher,commands}.test.ts',
  'test/{api,compare,sandbox,approval}/**/*.test.ts',
];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Tests of kills and races run on whatever machine CI has: there a failed one is run once more, and the report names it as retried.
    retry: process.env.CI ? 1 : 0,
    projects: [
      { extends: true, test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: [...slow, ...long], sequence: { groupOrder: 0 } } },
      { extends: true, test: { name: 'long', include: long, sequence: { groupOrder: 0 } } },
      // After the fast ones, one file at a time: what is measured by kills and limits should not fight other tests for the processor.
      {
        extends: true,
        test: { name: 'slow', include: slow, fileParallelism: false, testTimeout: 180_000, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
