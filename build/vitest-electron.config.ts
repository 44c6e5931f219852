import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** See test-electron.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: 'node_modules/.cache/vitest-electron',
  test: {
    include: ['test/electron/**/*.electron.ts'],
    pool: 'forks',
    maxWorkers: 1,
    allowOnly: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
