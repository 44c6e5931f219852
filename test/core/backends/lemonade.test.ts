import { describe, expect, it } from 'vitest';
import { commandFlags } from '../../../electron/core/ledger/footprint/command-flags.ts';
import { runsOnCpu } from '../../../electron/core/loop/model-view.ts';
import { instead, only, seen } from './one-model.ts';

describe('Lemonade', () => {
  it.each([
    ['npu', true],
    ['cpu', true],
    ['gpu', false],
    ['gpu|npu', false],
    [undefined, false],
  ])('one on device %s', async (device, isOffCard) => {
    const body = { all_models_loaded: [{ model_name: 'm', device, recipe_options: { ctx_size: 4096 } }] };
    await using it = await instead('Lemonade', {
      '/v1/health': { body },
      '/v1/models': { body: { data: [] } },
    });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(runsOnCpu(only(it)?.args ?? null)).toBe(isOffCard);
  });

  it('prices a load by the command that its llama-server was started with', async () => {
    const launch_command = [
      ...['/opt/lemonade/llamacpp/vulkan/llama-server', '-m', '/models/a.gguf', '--port', '8001'],
      ...['--ctx-size', '16384', '--mmproj', '/models/mmproj.gguf', '--cache-type-k', 'q8_0'],
    ];
    const loaded = { model_name: 'a', device: 'gpu', recipe: 'llamacpp', recipe_options: { ctx_size: -1 } };
    await using it = await instead('Lemonade', {
      '/v1/health': { body: { all_models_loaded: [{ ...loaded, launch_command }] } },
      '/v1/models': { body: { data: [] } },
    });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(only(it)).toMatchObject({ modelPath: '/models/a.gguf', contextTokens: 16_384 });
    expect(commandFlags(only(it)?.args ?? [])).toMatchObject({
      contextTokens: 16_384,
      projectorPath: '/models/mmproj.gguf',
      cacheTypeK: 'q8_0',
    });
  });

  it('lists nothing that runs at a provider’s, and takes no other server’s command for llama-server’s', async () => {
    const far = { model_name: 'fireworks.big', recipe: 'cloud' };
    const npu = {
      ...{ model_name: 'npu', recipe: 'ryzenai-llm', device: 'npu', status: 'loading' },
      launch_command: ['/opt/ryzenai-server', '-m', '/models/npu', '--ctx-size', '4096'],
    };
    await using it = await instead('Lemonade', {
      '/v1/health': { body: { all_models_loaded: [far, npu] } },
      '/v1/models': { body: { data: [{ id: 'fireworks.big', recipe: 'cloud' }] } },
    });
    await seen('it', () => only(it) !== undefined);
    expect(it.backend.snapshot().models.map((model) => [model.name, model.status])).toEqual([
      ['npu', 'loading'],
    ]);
    expect(only(it)?.modelPath).toBeNull();
    expect(runsOnCpu(only(it)?.args ?? null)).toBe(true);
  });

  it('is read under its older path too', async () => {
    const body = { all_models_loaded: [{ model_name: 'm', pid: 3, is_busy: true }], version: '8.2' };
    await using it = await instead('Lemonade', {
      '/api/v1/health': { body },
      '/api/v1/models': { body: { data: [] } },
    });
    await seen('it', () => only(it)?.busy === true);
    expect(it.backend.snapshot().version).toBe('8.2');
  });

  it.each([
    [{ checkpoint_loaded: 'org/m-GGUF:m-Q4_K_M.gguf', model_loaded: 'm' }, 'loaded'],
    [{ checkpoint_loaded: null, model_loaded: null }, 'unloaded'],
  ])('of before it held several models names the one it has: %j', async (body, status) => {
    await using it = await instead('Lemonade', {
      '/api/v1/health': { body: { status: 'ok', ...body } },
      '/api/v1/models': { body: { data: [{ id: 'm' }] } },
    });
    await seen('it', () => only(it)?.status === status);
    expect(it.backend.snapshot()).toMatchObject({ status: 'up', version: null });
  });

  it('that does not tell busy is asked by its process, else nobody knows', async () => {
    const body = { all_models_loaded: [{ model_name: 'm', backend_url: 'http://127.0.0.1:9/v1' }] };
    await using it = await instead('Lemonade', {
      '/v1/health': { body },
      '/v1/models': { body: { data: [] } },
    });
    await seen('it', () => only(it)?.status === 'loaded');
    expect(only(it)?.busy).toBeNull();
    expect(it.backend.snapshot().notes.join(' ')).toMatch(/CPU time/);
  });
});
