import { expect, it } from 'vitest';
import { parseRemembered, type RememberedAgent } from '../../../../electron/core/engine/desk/agent-memory.ts';

const agent: RememberedAgent = {
  name: 'smol',
  class: 'batch',
  path: '/m/smol.gguf',
  deviceId: 'sim:0',
  gpuLayers: null,
  weightsBytes: 5,
  overheadBytes: 0,
  contextTokens: 64,
  contextBytes: 7,
  vocabulary: 'letters',
  tokens: [1, 2, 3],
  saved: {
    place: 'file',
    record: {
      path: '/s/a.kv',
      bytes: 9,
      sha256: 'x',
      fingerprint: 'y',
      tokens: [1, 2],
      pendingToken: 3,
      contextTokens: 64,
      batchTokens: 32,
      flashAttention: true,
      cacheTypeK: 'F16',
      cacheTypeV: 'Q8_0',
      threads: 2,
      gpu: 'cpu',
      gpuLayers: 0,
    },
  },
};

it('reads back what was kept, through JSON', () => {
  expect(parseRemembered(JSON.parse(JSON.stringify(agent)))).toEqual(agent);
});

it.each([
  ['nothing', null],
  ['a list', []],
  ['no path', { ...agent, path: undefined }],
  ['tokens that are no numbers', { ...agent, tokens: ['1'] }],
  ['a negative size', { ...agent, weightsBytes: -1 }],
])('takes %s for no agent', (_, fact) => {
  expect(parseRemembered(fact)).toBeNull();
});

it('keeps the conversation where only the record of its state makes no sense', () => {
  const damaged = {
    ...agent,
    saved: { place: 'file', record: { ...agent.saved?.record, cacheTypeV: 'Q3' } },
  };
  expect(parseRemembered(damaged)).toEqual({ ...agent, saved: null });
});
