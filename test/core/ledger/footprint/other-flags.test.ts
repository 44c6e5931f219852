import { describe, expect, it } from 'vitest';
import { commandFlags } from '../../../../electron/core/ledger/footprint/command-flags.ts';
import {
  ollamaFlags,
  presetArgs,
  shellWords,
} from '../../../../electron/core/ledger/footprint/other-flags.ts';

/** llama-swap puts the port here. */
const PORT = ['$', '{PORT}'].join('');

describe('a llama-swap command', () => {
  it('is split as a shell would', () => {
    expect(shellWords(`llama-server --port ${PORT} -m "/my models/a.gguf" --x='b c' d\\ e`)).toEqual([
      'llama-server',
      '--port',
      PORT,
      '-m',
      '/my models/a.gguf',
      '--x=b c',
      'd e',
    ]);
  });

  it('may run over lines, with or without backslashes, and hold comments', () => {
    const cmd = `
      /opt/llama-server
      # two slots are enough
      -m /m.gguf \\
      -c 16384 --parallel 2
      -ctk q8_0
    `;
    expect(commandFlags(shellWords(cmd))).toMatchObject({
      modelPath: '/m.gguf',
      contextTokens: 16_384,
      slots: 2,
      cacheTypeK: 'q8_0',
    });
  });
});

describe('a preset', () => {
  it('names flags without their dashes, or as environment variables', () => {
    const flags = commandFlags(
      presetArgs(
        [
          '[qwen]',
          'model = /m.gguf',
          'c = 8192',
          'n-gpu-layers = 12',
          'flash-attn = off',
          'kv-unified = true',
          'mmproj-offload = false',
          'LLAMA_ARG_CACHE_TYPE_K = q4_0',
          'LLAMA_ARG_UBATCH = 256',
          'stop-timeout = 5',
        ].join('\n'),
      ),
    );
    expect(flags).toMatchObject({
      modelPath: '/m.gguf',
      contextTokens: 8192,
      gpuLayers: 12,
      flashAttention: 'off',
      unified: true,
      projectorOnDevice: false,
      cacheTypeK: 'q4_0',
      ubatch: 256,
    });
  });
});

describe('Ollama’s options', () => {
  it('give each slot its context, in a cache of its own', () => {
    expect(ollamaFlags({ num_ctx: 8192, parallel: 2, cacheType: 'q8_0', num_batch: 256 })).toMatchObject({
      contextTokens: 16_384,
      slots: 2,
      unified: false,
      ubatch: 256,
      cacheTypeK: 'q8_0',
      cacheTypeV: 'q8_0',
    });
  });

  it('stand at 4096 tokens in one slot, all layers, where they are not given', () => {
    expect(ollamaFlags({ num_gpu: -1 })).toMatchObject({ contextTokens: 4096, slots: 1, gpuLayers: null });
    expect(ollamaFlags({ num_gpu: 7 }).gpuLayers).toBe(7);
  });
});
