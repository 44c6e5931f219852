import { expect, it } from 'vitest';
import { modelsAmong } from '../../../electron/cli/presets/find-models.ts';

const among = (...files: readonly string[]) => modelsAmong(files);
const named = (...files: readonly string[]): Record<string, string | null> =>
  Object.fromEntries(among(...files).models.map((model) => [model.name, model.projectorPath]));

it('a model is one file, or the first of its parts where all are there', () => {
  expect(among('/m/a.gguf', '/m/b-00001-of-00002.gguf', '/m/b-00002-of-00002.gguf').models).toEqual([
    { name: 'a', path: '/m/a.gguf', projectorPath: null },
    { name: 'b', path: '/m/b-00001-of-00002.gguf', projectorPath: null },
  ]);
});

it('a model of which parts are missing is left out, and why is said', () => {
  const { models, leftOut } = among('/m/b-00001-of-00003.gguf', '/m/b-00003-of-00003.gguf');
  expect(models).toEqual([]);
  expect(leftOut).toEqual([{ path: '/m/b-00001-of-00003.gguf', why: '1 of its parts is missing.' }]);
});

it('a projector belongs to the models of its own repository, the half-precision one first', () => {
  expect(
    named(
      '/r/gemma-3-4b-it-Q8_0.gguf',
      '/r/gemma-3-4b-it-Q4_K_M.gguf',
      '/r/mmproj-F32.gguf',
      '/r/mmproj-F16.gguf',
    ),
  ).toEqual({ 'gemma-3-4b-it-Q8_0': '/r/mmproj-F16.gguf', 'gemma-3-4b-it-Q4_K_M': '/r/mmproj-F16.gguf' });
});

it('in a folder of many models a projector is only for the one it is named after', () => {
  expect(named('/m/gemma-3.gguf', '/m/qwen-7b.gguf', '/m/gemma-3-mmproj.gguf', '/m/mmproj-x.gguf')).toEqual({
    'gemma-3': '/m/gemma-3-mmproj.gguf',
    'qwen-7b': null,
  });
});

it('what llama.cpp downloads with a model is none by itself, and does not part it from its projector', () => {
  const files = ['/r/big-Q4_K_M.gguf', '/r/mtp-big-Q4_K_M.gguf', '/r/imatrix.gguf', '/r/mmproj-F16.gguf'];
  const { models, leftOut } = among(...files);
  expect(models).toEqual([
    { name: 'big-Q4_K_M', path: '/r/big-Q4_K_M.gguf', projectorPath: '/r/mmproj-F16.gguf' },
  ]);
  expect(leftOut.map(({ path }) => path)).toEqual(['/r/mtp-big-Q4_K_M.gguf', '/r/imatrix.gguf']);
});

it('two files of one name are told apart by their folders, and no name breaks its section', () => {
  expect(Object.keys(named('/m/one/model.gguf', '/m/two/model.gguf', '/m/three/od[d].gguf'))).toEqual([
    'one-model',
    'od_d_',
    'two-model',
  ]);
});
