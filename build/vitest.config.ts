import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TallyReporter } from './tally-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Three groups, one after the other, so that real servers and a browser do not compete with the
 * unit tests for a small machine's cores. (Order 0 would not do: Vitest puts files of that order last
 * where it has one worker.) No time limit here asserts speed: they end hangs. A test gets a second
 * try, since most run servers, children or a browser, and another program's load on the machine can
 * move their moments; the tally names each that needed it, so that none hides.
 */
export default defineConfig({
  root,
  cacheDir: 'node_modules/.cache/vitest',
  test: {
    allowOnly: false,
    passWithNoTests: false,
    retry: 1,
    reporters: ['default', new TallyReporter()],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.{ts,tsx}'],
          exclude: ['test/integration/**', 'test/package/**', 'test/e2e/**'],
          pool: 'forks',
          testTimeout: 30_000,
          hookTimeout: 30_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/package/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          testTimeout: 90_000,
          hookTimeout: 90_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
