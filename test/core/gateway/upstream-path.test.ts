import { describe, expect, it } from 'vitest';
import { upstreamOf } from '../../../electron/core/gateway/upstream-path.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { modelView } from '../../support/model-view.ts';

const swap = backendSetting({ name: 'swap', kind: 'llama-swap' });
const views = [
  modelView({ backend: 'swap', name: 'qwen', aliases: ['fast'] }),
  modelView({ backend: 'swap', name: 'org/qwen' }),
  modelView({ backend: 'swap', name: 'org/qwen/v1' }),
  modelView({ backend: 'other', name: 'gemma' }),
];

describe('a path of llama-swap that names its model', () => {
  it.each([
    ['/upstream/qwen/v1/chat/completions', 'qwen', '/v1/chat/completions'],
    ['/upstream/qwen/slots?fail=1', 'qwen', '/slots?fail=1'],
    ['/upstream/qwen/', 'qwen', '/'],
    ['/upstream/fast/health', 'fast', '/health'],
    ['/upstream/org%2Fqwen/props', 'org/qwen', '/props'],
    ['/upstream/org/qwen/props', 'org/qwen', '/props'],
    ['/upstream/org/qwen/v1/models', 'org/qwen', '/v1/models'],
    ['/upstream//qwen/v1//models', 'qwen', '/v1//models'],
    ['/upstream/org//qwen/props', 'org/qwen', '/props'],
  ])('%s means %s and asks it for %s', (path, model, meant) => {
    expect(upstreamOf(path, swap, views)).toEqual({ model, path: meant });
  });

  it.each(['/upstream/gemma/props', '/upstream/qwen2/props', '/upstream/', '/v1/models', '/upstreams/qwen/'])(
    '%s is none',
    (path) => {
      expect(upstreamOf(path, swap, views)).toBeNull();
    },
  );

  it('is one of llama-swap only', () => {
    expect(upstreamOf('/upstream/m/props', backendSetting(), [modelView()])).toBeNull();
  });
});
