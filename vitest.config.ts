import { defineConfig } from 'vitest/config';

/** `fast`: no sandbox is started. `slow`: real sandboxes, kills, packing. Both belong to `npm test`. */
const slow = [
  'test/e2e/**/*.test.ts',
  'test/attack/**/*.test.ts',
  'test/conformance/engine*.test.ts',
  'test/conformance/placement*.test.ts',
];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Tests of kills and races run on whatever machine CI has: there a failed one is run once more, and the report names it as retried.
    retry: process.env.CI ? 1 : 0,
    projects: [
      { extends: true, test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: slow, sequence: { groupOrder: 0 } } },
      // After the fast ones, one file at a time: what is measured by kills and limits should not fight other tests for the processor.
      {
        extends: true,
        test: { name: 'slow', include: slow, fileParallelism: false, testTimeout: 180_000, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
