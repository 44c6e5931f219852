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

describe('a preset’s words', () => {
  const flags = (...lines: string[]) => commandFlags(presetArgs(lines.join('\n')));

  it('1 and 0 are yes and no of a flag without a value, and numbers of others', () => {
    expect(flags('kv-offload = 0', 'swa-full = 0', 'kv-unified = 0', 'cpu-moe = 0')).toMatchObject({
      cacheOnDevice: false,
      fullWindowCache: false,
      unified: false,
      cpuExpertLayers: 0,
    });
    expect(flags('swa-full = 1', 'no-kv-offload = 1', 'parallel = 1', 'n-gpu-layers = 0')).toMatchObject({
      fullWindowCache: true,
      cacheOnDevice: false,
      slots: 1,
      gpuLayers: 0,
    });
    expect(presetArgs('metrics = 0\nn-predict = 1')).toEqual(['--no-metrics', '--n-predict', '1']);
  });

  it('short names are flags too', () => {
    const short = flags(
      'kvu = on',
      'cmoe = true',
      'nkvo = 1',
      'sm = none',
      'ctkd = q8_0',
      'ngld = 4',
      'fit = off',
    );
    expect(short).toMatchObject({ unified: true, cacheOnDevice: false, devices: 1, fit: false });
    expect(short.cpuExpertLayers).toBeGreaterThan(1000);
    expect(short.draft).toMatchObject({ cacheTypeK: 'q8_0', gpuLayers: 4 });
  });

  it('a flag that is said no to is not there', () => {
    expect(presetArgs('metrics = false\nno-mmap = off')).toEqual(['--no-metrics', '--mmap']);
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
