/**
 * `npm test`: lint, types, the import rule, then all tests; arguments go to Vitest. Each of the first
 * three counts as one test. Ends with `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addTallies, parseTally, type Tally, tallyLine } from './tally.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'node_modules/.bin');
const env = { ...process.env, PATH: `${bin}:${process.env.PATH ?? ''}` };

function succeeds(title: string, command: string, args: readonly string[]): boolean {
  const startedAtMs = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
  const seconds = ((Date.now() - startedAtMs) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? 'ok    ' : 'FAILED'} ${title} (${seconds} s)\n`);
  return status === 0;
}

function runVitest(args: readonly string[]): Tally {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-tally-'));
  const file = join(folder, 'tally.json');
  try {
    const { status } = spawnSync(
      join(bin, 'vitest'),
      ['run', '--config', join(root, 'build/vitest.config.ts'), ...args],
      { cwd: root, env: { ...env, LANDLORD_TALLY_FILE: file }, stdio: 'inherit' },
    );
    const tally = parseTally(readIfThere(file));
    if (tally === null) return { passed: 0, failed: 1, skipped: 0 };
    // An exit code that says more than the counts do is a failure all the same.
    return status !== 0 && tally.failed === 0 ? { ...tally, failed: 1 } : tally;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

const checks = [
  succeeds('lint and format', join(bin, 'biome'), ['check', '--error-on-warnings']),
  succeeds('types', join(bin, 'tsc'), ['-b']),
  succeeds('import rule', process.execPath, [join(root, 'build/check-layers.ts')]),
];
const passed = checks.filter(Boolean).length;
const total = addTallies(
  { passed, failed: checks.length - passed, skipped: 0 },
  runVitest(process.argv.slice(2)),
);
if (total.skipped > 0) process.stdout.write(`${total.skipped} skipped\n`);
process.exitCode = total.failed === 0 ? 0 : 1;
process.stdout.write(`${tallyLine(total)}\n`);
