import { describe, expect, it } from 'vitest';
import { hasPassiveMetrics, parseProps } from '../../../electron/core/backends/server-props.ts';

describe('what a server says of itself', () => {
  it('tells a router from a single server, and takes the placeholder’s zeros as unknown', () => {
    const router = {
      role: 'router',
      model_path: 'none',
      model_alias: 'llama-server',
      default_generation_settings: { params: null, n_ctx: 0 },
      build_info: 'b11669-Debian',
    };
    expect(parseProps(router)).toMatchObject({
      role: 'router',
      build: 11_669,
      contextTokens: null,
      modelPath: null,
    });
    expect(parseProps({ build_info: 'b9000-abc', is_sleeping: true })).toMatchObject({
      role: 'single',
      isSleeping: true,
    });
  });

  it.each([
    ['b11669-Debian', 11_669],
    ['b(10519)-(a1b2c3d)', 10_519],
    ['0.1.2-dev (build 10493, commit 04b569142)', 10_493],
    ['9760 (6ee0f6579)', 9_760],
    ['v1.2.3', null],
    ['', null],
  ])('reads the build of %s', (text, build) => {
    expect(parseProps({ default_generation_settings: {}, build_info: text })?.build).toBe(build);
  });

  it('rule 12: takes counters as passive only from builds known to leave models asleep', () => {
    expect(hasPassiveMetrics(10_519)).toBe(true);
    expect(hasPassiveMetrics(10_518)).toBe(false);
    expect(hasPassiveMetrics(null)).toBe(false);
  });

  it('names a model by its file where it has no alias, and keeps a repository’s name whole', () => {
    const named = (alias: string) => parseProps({ build_info: 'b1', model_alias: alias })?.modelName;
    expect(named('/models/Qwen3-8B-Q4_K_M.gguf')).toBe('Qwen3-8B-Q4_K_M');
    expect(named('C:\\models\\a.gguf')).toBe('a');
    expect(named('owner/model-GGUF:Q4_0')).toBe('owner/model-GGUF:Q4_0');
    expect(named('mine')).toBe('mine');
  });

  it('is null for another program’s answer', () => {
    for (const body of [null, [], 'ok', { status: 'ok' }]) expect(parseProps(body)).toBeNull();
  });
});
