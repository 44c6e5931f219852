import { describe, expect, it } from 'vitest';
import { commandFlags } from '../../../../electron/core/ledger/footprint/command-flags.ts';
import {
  environmentArgs,
  memoryVariables,
  withEnvironment,
} from '../../../../electron/core/ledger/footprint/environment-flags.ts';

describe('llama-server’s environment', () => {
  it('sets what its flags set', () => {
    const args = environmentArgs([
      ['LLAMA_ARG_CTX_SIZE', '16384'],
      ['LLAMA_ARG_N_PARALLEL', '2'],
      ['LLAMA_ARG_UBATCH', '256'],
      ['LLAMA_ARG_CACHE_TYPE_K', 'q8_0'],
      ['LLAMA_ARG_FLASH_ATTN', 'off'],
      ['LLAMA_ARG_N_GPU_LAYERS', '12'],
      ['LLAMA_ARG_SWA_FULL', 'true'],
      ['LLAMA_ARG_KV_OFFLOAD', '0'],
      ['LLAMA_ARG_NO_MMPROJ_OFFLOAD', '1'],
    ]);
    expect(commandFlags(args)).toMatchObject({
      contextTokens: 16_384,
      slots: 2,
      ubatch: 256,
      cacheTypeK: 'q8_0',
      flashAttention: 'off',
      gpuLayers: 12,
      fullWindowCache: true,
      cacheOnDevice: false,
      projectorOnDevice: false,
    });
  });

  it('names a model by its repository', () => {
    const variables = [['LLAMA_ARG_HF_REPO', 'maker/m:Q4_K_M']] as const;
    expect(withEnvironment(['llama-server'], variables)).toEqual([
      'llama-server',
      '--hf-repo',
      'maker/m:Q4_K_M',
    ]);
  });

  it('gives way to the command line', () => {
    const variables = [['LLAMA_ARG_CTX_SIZE', '65536']] as const;
    expect(commandFlags(withEnvironment(['llama-server', '-m', '/m.gguf'], variables)).contextTokens).toBe(
      65_536,
    );
    expect(commandFlags(withEnvironment(['llama-server', '-c', '4096'], variables)).contextTokens).toBe(4096);
    expect(commandFlags(withEnvironment(['-c', '4096'], variables)).contextTokens).toBe(4096);
    expect(withEnvironment(['llama-server', '-c', '1'], [])).toEqual(['llama-server', '-c', '1']);
  });

  it('is read for what changes memory alone: no key or token leaves it', () => {
    const environ = [
      'HOME=/home/me',
      'LLAMA_API_KEY=secret',
      'LLAMA_ARG_API_KEY_FILE=/secret',
      'LLAMA_ARG_STATIC_PATH=/srv/page',
      'LLAMA_ARG_CTX_SIZE=8192',
      'LLAMA_ARG_KV_UNIFIED=maybe',
      'LLAMA_ARG_SWA_FULL=1',
      `LLAMA_ARG_MODEL=${'x'.repeat(10_000)}`,
      'LLAMA_ARG_',
      'nonsense',
    ].join('\0');
    expect(memoryVariables(environ)).toEqual([
      ['LLAMA_ARG_CTX_SIZE', '8192'],
      ['LLAMA_ARG_SWA_FULL', '1'],
    ]);
  });
});
