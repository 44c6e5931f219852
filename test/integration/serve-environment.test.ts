import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { childrenOf } from '../support/figures.ts';
import { until } from '../support/router.ts';
import { startServeProcess } from '../support/serve-process.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-environment-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What a process was started with, by name. */
function startedWith(pid: number, name: string): string | null {
  const line = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .find((entry) => entry.startsWith(`${name}=`));
  return line?.slice(name.length + 1) ?? null;
}

function samplerOf(pid: number): number | null {
  const isSampler = (child: number): boolean =>
    procfs()
      .command(child)
      ?.some((word) => /sampler-child\.[jt]s$/.test(word)) === true;
  return childrenOf(pid).find(isSampler) ?? null;
}

/** MALLOC_ARENA_MAX of a runtime, and of what it starts. */
async function arenas(env: Readonly<Record<string, string>>): Promise<readonly (string | null)[]> {
  await using served = await startServeProcess({ folder, config: 'backends: []\n', env });
  await until(() => samplerOf(served.pid) !== null, 20_000, 'its sampler');
  return [served.pid, samplerOf(served.pid) ?? 0].map((pid) => startedWith(pid, 'MALLOC_ARENA_MAX'));
}

it('sets how a runtime keeps memory for that process alone, and leaves what its user has set to all', async () => {
  expect(await arenas({})).toEqual(['2', null]);
  expect(await arenas({ MALLOC_ARENA_MAX: '7' })).toEqual(['7', '7']);
});
