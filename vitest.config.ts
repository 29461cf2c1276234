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
    projects: [
      { extends: true, test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: slow } },
      { extends: true, test: { name: 'slow', include: slow, fileParallelism: false, testTimeout: 120_000 } },
    ],
  },
});
