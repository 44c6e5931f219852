import { describe, expect, it } from 'vitest';
import type { FootprintSource } from '../../../electron/core/ledger/footprint/footprint-source.ts';
import type { LoadRequest } from '../../../electron/core/ledger/footprint/load-request.ts';
import { argsKey, type FileSizes, learn, predict } from '../../../electron/core/ledger/prediction.ts';
import { splitParts, weightFiles } from '../../../electron/core/ledger/weight-files.ts';
import { fail, ok } from '../../../shared/errors.ts';

const GB = 1_000_000_000;
const FOOTPRINT = {
  weightsBytes: 0,
  kvBytes: 0,
  recurrentBytes: 0,
  computeBytes: 0,
  overheadBytes: 0,
  layers: 1,
  kvLayers: 1,
  contextTokens: 256,
  notes: [],
};

function disk(files: Record<string, number>): FileSizes {
  return { sizeOf: async (path) => files[path] ?? null };
}

const args = ['/usr/bin/llama-server', '-m', '/m/a.gguf', '-c', '8192', '--port', '5001', '--alias', 'a'];
const request = { id: 'router/a', args, modelPath: null };
const files = disk({ '/m/a.gguf': 5 * GB });

describe('where a predicted footprint comes from', () => {
  it('measured before, then the operator’s figure, then the weights alone, then nothing', async () => {
    const measured = learn([], request, 7 * GB);
    const figures = { a: 6 * GB };
    expect(await predict(request, measured, figures, files)).toEqual({
      bytes: 7 * GB,
      source: 'measured before',
    });
    expect(await predict(request, [], figures, files)).toEqual({ bytes: 6 * GB, source: 'your figure' });
    expect(await predict(request, [], {}, files)).toEqual({ bytes: 5 * GB, source: 'weights only' });
    expect(await predict(request, [], {}, disk({}))).toBeNull();
  });

  it('a figure measured with other flags does not count; another port is no other flag', async () => {
    const measured = learn([], request, 7 * GB);
    const moved = { ...request, args: args.map((arg) => (arg === '5001' ? '5002' : arg)) };
    expect((await predict(moved, measured, {}, files))?.source).toBe('measured before');
    const longer = { ...request, args: args.map((arg) => (arg === '8192' ? '131072' : arg)) };
    expect((await predict(longer, measured, {}, files))?.source).toBe('weights only');
    expect((await predict({ ...request, id: 'router/b' }, measured, {}, files))?.source).toBe('weights only');
  });

  it('a figure measured on one device counts on that one alone, and each keeps its own', async () => {
    const on = (deviceId: string | null) => ({ ...request, deviceId });
    const measured = learn(learn([], on('nvidia:0'), 7 * GB), on('amdgpu:1'), 8 * GB);
    expect((await predict(on('nvidia:0'), measured, {}, files))?.bytes).toBe(7 * GB);
    expect((await predict(on('amdgpu:1'), measured, {}, files))?.bytes).toBe(8 * GB);
    expect((await predict(on('nvidia:2'), measured, {}, files))?.source).toBe('weights only');
    // Nobody knows where it will go: any figure is better than none.
    expect((await predict(on(null), measured, {}, files))?.source).toBe('measured before');
  });

  it('a model that shows no flags gets its newest measurement', async () => {
    const longer = { ...request, args: [...args, '--mlock'] };
    const measured = learn(learn(learn([], request, 7 * GB), longer, 9 * GB), request, 8 * GB);
    expect((await predict({ ...request, args: null }, measured, {}, files))?.bytes).toBe(8 * GB);
    expect(measured).toHaveLength(2);
  });

  it('learns no nonsense', () => {
    for (const bytes of [Number.NaN, -1, 0, 0.5]) expect(learn([], request, bytes)).toEqual([]);
  });

  it('the flags that make a footprint do not include the program’s path', () => {
    expect(argsKey(['/a/llama-server', '-c', '1'])).toBe(argsKey(['/b/llama-server', '-c', '1']));
    expect(argsKey(['-c', '1'])).not.toBe(argsKey(['-c', '2']));
    expect(argsKey(['-c', '1', '--port=5801'])).toBe(argsKey(['-c', '1', '--port', '5802']));
    expect(argsKey(['--port=5801', '-c', '1'])).not.toBe(argsKey(['--port=5801', '-c', '2']));
  });
});

describe('an estimate', () => {
  const asked: LoadRequest[] = [];
  const source = (totalBytes: number | null): FootprintSource => ({
    async footprintOf(load) {
      asked.push(load);
      return totalBytes === null ? fail('bad_input', 'x.gguf is empty.') : ok({ ...FOOTPRINT, totalBytes });
    },
  });

  it('stands between the operator’s figure and the weights alone', async () => {
    const nine = source(9 * GB);
    expect(await predict(request, [], {}, files, nine)).toEqual({ bytes: 9 * GB, source: 'estimate' });
    expect((await predict(request, [], { a: 6 * GB }, files, nine))?.source).toBe('your figure');
    const measured = learn([], request, 7 * GB);
    expect((await predict(request, measured, {}, files, nine))?.source).toBe('measured before');
    expect(await predict(request, [], {}, files, source(null))).toEqual({
      bytes: 5 * GB,
      source: 'weights only',
    });
  });

  it('is asked for with the flags, the device and the build', async () => {
    asked.length = 0;
    await predict({ ...request, deviceKind: 'hip', build: 11_000 }, [], {}, files, source(GB));
    expect(asked).toEqual([{ modelPath: null, args, kind: 'hip', build: 11_000 }]);
  });

  it('is not asked for where no file is named', async () => {
    asked.length = 0;
    expect(await predict({ ...request, args: ['-c', '1'] }, [], {}, files, source(GB))).toBeNull();
    expect(asked).toEqual([]);
  });

  it('is no more than llama-server’s own fit leaves, where it may lessen something', async () => {
    const on = { ...request, deviceTotalBytes: 8 * GB };
    const margin = 1024 * 1_048_576;
    expect((await predict(on, [], {}, files, source(30 * GB)))?.bytes).toBe(8 * GB - margin);
    const nearer = { ...on, args: [...args, '--fit-target', '256'] };
    expect((await predict(nearer, [], {}, files, source(30 * GB)))?.bytes).toBe(8 * GB - margin / 4);
    for (const set of [
      ['-ngl', '99'],
      ['--fit', 'off'],
    ]) {
      const fixed = { ...on, args: [...args, ...set] };
      expect((await predict(fixed, [], {}, files, source(30 * GB)))?.bytes).toBe(30 * GB);
    }
  });
});

describe('the weights alone', () => {
  it('counts split parts, projector, draft and adapters once each', () => {
    const list = weightFiles(
      ['-m', '/m/x-00002-of-00003.gguf', '--mmproj', '/m/p.gguf', '-md', '/m/d.gguf', '--lora', '/m/d.gguf'],
      null,
    );
    expect(list).toEqual([
      '/m/x-00001-of-00003.gguf',
      '/m/x-00002-of-00003.gguf',
      '/m/x-00003-of-00003.gguf',
      '/m/p.gguf',
      '/m/d.gguf',
    ]);
  });

  it('leaves out a projector that stays in system memory', () => {
    expect(weightFiles(['-m', 'a.gguf', '--mmproj', 'p.gguf', '--no-mmproj-offload'], null)).toEqual([
      'a.gguf',
    ]);
  });

  it('takes the path the backend names where the flags name none', () => {
    expect(weightFiles(null, '/m/a.gguf')).toEqual(['/m/a.gguf']);
    expect(weightFiles(['-hf', 'owner/name'], null)).toEqual([]);
  });

  it('is nothing where a part is missing: half the weights are no estimate', async () => {
    const split = { id: 'r/x', args: null, modelPath: '/m/x-00001-of-00002.gguf' };
    expect(await predict(split, [], {}, disk({ '/m/x-00001-of-00002.gguf': GB }))).toBeNull();
    const both = disk({ '/m/x-00001-of-00002.gguf': GB, '/m/x-00002-of-00002.gguf': GB });
    expect((await predict(split, [], {}, both))?.bytes).toBe(2 * GB);
  });

  it('takes a name that only looks split for itself', () => {
    for (const path of ['/m/a-00001-of-00000.gguf', '/m/a-1-of-3.gguf', '/m/a-00001-of-99999.gguf'])
      expect(splitParts(path)).toEqual([path]);
  });
});
