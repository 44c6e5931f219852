import { describe, expect, it } from 'vitest';
import { commandFlags } from '../../../../electron/core/ledger/footprint/command-flags.ts';
import { DEFAULT_FLAGS, type LoadFlags, slotsOf } from '../../../../electron/core/ledger/footprint/flags.ts';

const parsed = (line: string): LoadFlags => commandFlags(line.split(' ').filter(Boolean));
const changed = (line: string): Partial<LoadFlags> =>
  Object.fromEntries(
    Object.entries(parsed(line)).filter(
      ([key, value]) =>
        JSON.stringify(value) !==
        JSON.stringify(Object.entries(DEFAULT_FLAGS).find(([name]) => name === key)?.[1]),
    ),
  );

describe('a llama-server command line', () => {
  it.each<readonly [string, Partial<LoadFlags>]>([
    ['', {}],
    ['llama-server --port 8080 --jinja', {}],
    ['/opt/llama serve -m /m.gguf', { modelPath: '/m.gguf' }],
    ['-c 8192', { contextTokens: 8192 }],
    ['--ctx-size=8192', { contextTokens: 8192 }],
    ['-c 4096 -c 0', {}],
    ['--parallel 2', { slots: 2 }],
    ['-np -1', {}],
    ['-np 3 -kvu', { slots: 3, unified: true }],
    ['--no-kv-unified', { unified: false }],
    ['-b 512 -ub 1024', { batch: 512, ubatch: 1024 }],
    ['-ctk q8_0 --cache-type-v Q4_0', { cacheTypeK: 'q8_0', cacheTypeV: 'q4_0' }],
    ['-fa off', { flashAttention: 'off' }],
    ['-fa 1', { flashAttention: 'on' }],
    ['-fa -c 512', { flashAttention: 'on', contextTokens: 512 }],
    ['--flash-attn auto', {}],
    ['-ngl 20', { gpuLayers: 20 }],
    ['-ngl 0', { gpuLayers: 0 }],
    ['-ngl all', {}],
    ['--n-gpu-layers -1', {}],
    ['--device none', { gpuLayers: 0, devices: 0 }],
    ['--device CUDA0,CUDA1', { devices: 2 }],
    ['-ts 3,1,0', { devices: 2 }],
    ['-ts 3,1 -sm none', {}],
    ['-sm none -ts 3,1', {}],
    ['--split-mode none --device CUDA0,CUDA1', {}],
    ['-sm none -sm layer -ts 3,1', { devices: 2 }],
    ['-sm none -dev none', { gpuLayers: 0, devices: 0 }],
    ['-cmoe --moe-cache-mib 2048', { cpuExpertLayers: Number.MAX_SAFE_INTEGER, expertCacheBytes: 2 ** 31 }],
    ['-otd a=CPU', { draft: { ...DEFAULT_FLAGS.draft, overrides: [{ pattern: 'a', buffer: 'CPU' }] } }],
    ['-ncmoe 12', { cpuExpertLayers: 12 }],
    ['--cpu-moe', { cpuExpertLayers: Number.MAX_SAFE_INTEGER }],
    ['--swa-full', { fullWindowCache: true }],
    ['-nkvo', { cacheOnDevice: false }],
    ['--mmproj /p.gguf --no-mmproj-offload', { projectorPath: '/p.gguf', projectorOnDevice: false }],
    ['-mm /p.gguf --no-mmproj', {}],
    ['--lora /a.gguf --lora /b.gguf', { adapterPaths: ['/a.gguf', '/b.gguf'] }],
    ['-md /d.gguf --spec-draft-n-max 8', { draftPath: '/d.gguf' }],
    ['--lora-scaled /a.gguf:0.5,/b.gguf:-1', { adapterPaths: ['/a.gguf', '/b.gguf'] }],
    ['--no-mmproj-offload --mmproj-offload', {}],
    ['-mmdev none', { projectorOnDevice: false }],
    ['-devd none', { draft: { ...DEFAULT_FLAGS.draft, gpuLayers: 0 } }],
    ['--spec-draft-ncmoe 3', { draft: { ...DEFAULT_FLAGS.draft, cpuExpertLayers: 3 } }],
    ['--spec-type draft-mtp', { nextTokenDraft: 3, rollbackTokens: 3 }],
    ['--spec-draft-n-max 6 --spec-type draft-mtp', { nextTokenDraft: 6, rollbackTokens: 6 }],
    ['--spec-type draft-eagle3 -md /d.gguf', { draftPath: '/d.gguf', rollbackTokens: 3 }],
    ['--spec-type ngram-mod,draft-dflash --draft-max 9', { rollbackTokens: 9 }],
    ['--spec-type ngram-mod --draft-max 9', {}],
    ['-mla 3', { latentCache: true }],
    ['--kv-unified-per-slot 8192 -np 2', { slots: 2, contextTokens: 16_384 }],
    ['--kv-unified-per-slot 8192 -c 4096', { contextTokens: 4096 }],
    ['--fit off', { fit: false }],
    ['-fitt 256', { fitMarginBytes: 256 * 1_048_576 }],
    ['--fit-target 4096,2048', { fitMarginBytes: 2048 * 1_048_576 }],
    ['--fit-target much', {}],
    ['-c nonsense', {}],
    ['-c', {}],
  ])('%s', (line, wanted) => {
    expect(changed(line)).toEqual(wanted);
  });

  it.each(['toString', 'constructor', '__proto__'])('may name anything %s', (name) => {
    expect(commandFlags(['--alias', name, '-c', '4096'])).toEqual({ ...DEFAULT_FLAGS, contextTokens: 4096 });
  });

  it('may override tensors several times and in one go', () => {
    expect(parsed('-ot exps=CPU,attn_.*=CUDA1 -ot ^output=CPU').overrides).toEqual([
      { pattern: 'exps', buffer: 'CPU' },
      { pattern: 'attn_.*', buffer: 'CUDA1' },
      { pattern: '^output', buffer: 'CPU' },
    ]);
  });

  it('has flags for the draft model of their own', () => {
    expect(parsed('-ngld 5 -ctkd q8_0 --spec-draft-type-v q4_0 --spec-draft-n-ubatch 64').draft).toEqual({
      cacheTypeK: 'q8_0',
      cacheTypeV: 'q4_0',
      gpuLayers: 5,
      ubatch: 64,
      cpuExpertLayers: 0,
      overrides: [],
    });
  });

  it('has four slots on one cache where none are asked for, else one cache for each', () => {
    expect(slotsOf(parsed(''))).toEqual({ sequences: 4, streams: 1 });
    expect(slotsOf(parsed('-np 1'))).toEqual({ sequences: 1, streams: 1 });
    expect(slotsOf(parsed('-np 2'))).toEqual({ sequences: 2, streams: 2 });
    expect(slotsOf(parsed('-np 2 -kvu'))).toEqual({ sequences: 2, streams: 1 });
    expect(slotsOf(parsed('-no-kvu'))).toEqual({ sequences: 4, streams: 1 });
    expect(slotsOf(parsed('-no-kvu -np 2'))).toEqual({ sequences: 2, streams: 2 });
    expect(slotsOf(parsed('--kv-unified-per-slot 512 -np 2'))).toEqual({ sequences: 2, streams: 2 });
  });
});
