import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type KeptRun, keep, type RunEnd } from '../../../../electron/core/backends/own/keeper.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-keeper-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

describe('keeper: what its server gets', () => {
  it('is our environment, without what Electron sets for children of its own', async () => {
    vi.stubEnv('ELECTRON_RUN_AS_NODE', '1');
    vi.stubEnv('LANDLORD_TEST_WORD', 'passed on');
    const logFile = join(folder, 'server.log');
    const say = 'echo "word=$LANDLORD_TEST_WORD node=$' + '{ELECTRON_RUN_AS_NODE-unset}"';
    const end = await new Promise<RunEnd>((resolve) => {
      keep({ command: ['sh', '-c', say], cwd: folder, logFile, graceMs: 1_000 }, () => {}, resolve);
    });
    expect(end).toMatchObject({ kind: 'ended', exitCode: 0 });
    expect(readFileSync(logFile, 'utf8')).toContain('word=passed on node=unset');
  });
});

it('a keeper that can not be started is a refused run, told once it has been returned', async () => {
  // Through a file: there `fork` throws, as it does where there is no memory for a process.
  vi.spyOn(process, 'execPath', 'get').mockReturnValue('/etc/passwd/node');
  const run = { command: ['true'], cwd: folder, logFile: join(folder, 'log'), graceMs: 1_000 };
  let kept: KeptRun | null = null;
  const seen = await new Promise<readonly [KeptRun | null, RunEnd]>((resolve) => {
    kept = keep(
      run,
      () => {},
      (end) => resolve([kept, end]),
    );
  });
  expect(seen).toEqual([
    expect.objectContaining({ pid: null }),
    { kind: 'refused', reason: expect.stringContaining('ENOTDIR') },
  ]);
  await seen[0]?.stop();
});
