import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SavedState } from '../../../../electron/core/engine/desk/agent.ts';
import { StateFiles, type StateFilesOptions } from '../../../../electron/core/engine/desk/state-files.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-states-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const files = (more: Partial<StateFilesOptions> = {}): StateFiles =>
  new StateFiles({
    hostDir: join(folder, 'host'),
    fileDir: join(folder, 'file'),
    hostBudgetBytes: 100,
    fileBudgetBytes: 100,
    roomBytes: async () => null,
    ...more,
  });
const saved = (path: string, bytes: number, place: SavedState['place'] = 'host'): SavedState => ({
  place,
  record: {
    path,
    bytes,
    sha256: '',
    fingerprint: '',
    tokens: [],
    pendingToken: null,
    contextTokens: 64,
    batchTokens: 32,
    flashAttention: true,
    cacheTypeK: 'F16',
    cacheTypeV: 'F16',
    threads: 1,
    gpu: 'cpu',
    gpuLayers: 0,
  },
});

describe('places for states', () => {
  it('keeps each place inside its budget, and inside what is really free', async () => {
    const places = files();
    expect(await places.placesFor(100)).toEqual(['host', 'file']);
    places.add(saved(places.pathFor('a', 'host'), 60));
    expect(await places.placesFor(41)).toEqual(['file']);
    expect(await places.placesFor(101)).toEqual([]);
    const short = files({ roomBytes: async (place) => (place === 'host' ? 10 : 50) });
    expect(await short.placesFor(40)).toEqual(['file']);
  });

  it('makes no folder before one is needed, and trusts none that others can write to', async () => {
    const places = files();
    await places.open([]);
    expect(await readdir(folder)).toEqual([]);
    await mkdir(join(folder, 'host'));
    await chmod(join(folder, 'host'), 0o777);
    expect(await places.placesFor(10)).toEqual(['file']);
  });

  it('takes away what a killed runtime left, but for what is remembered', async () => {
    const places = files();
    await places.placesFor(1);
    const kept = join(folder, 'file', 'kept.kv');
    await writeFile(kept, '12345');
    await writeFile(join(folder, 'file', 'stray.kv'), '1');
    await writeFile(join(folder, 'host', 'stray.kv.part'), '1');
    const next = files();
    const state = saved(kept, 5, 'file');
    await next.open([state, saved(join(folder, 'host', 'gone.kv'), 5)]);
    expect(await readdir(join(folder, 'file'))).toEqual(['kept.kv']);
    expect(await readdir(join(folder, 'host'))).toEqual([]);
    expect([next.has(state), next.usedBytes('file')]).toEqual([true, 5]);
  });

  it('moves a state from host memory to a file whole, or not at all', async () => {
    const places = files();
    await places.placesFor(1);
    const state = saved(places.pathFor('a', 'host'), 5);
    await writeFile(state.record.path, '12345');
    places.add(state);
    const moved = await places.toFile('a', state);
    expect(moved).toMatchObject({ place: 'file', record: { bytes: 5 } });
    expect([places.usedBytes('host'), places.usedBytes('file')]).toEqual([0, 5]);
    expect(await readdir(join(folder, 'host'))).toEqual([]);
    expect(await readdir(join(folder, 'file'))).toHaveLength(1);
    const gone = saved(join(folder, 'host', 'no-such.kv'), 5);
    expect(await places.toFile('a', gone)).toBeNull();
    expect(await readdir(join(folder, 'file'))).toHaveLength(1);
  });
});
