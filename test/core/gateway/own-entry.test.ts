import { describe, expect, it } from 'vitest';
import { ownRoute } from '../../../electron/core/gateway/own-entry.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { modelView } from '../../support/model-view.ts';

const A = backendSetting({ name: 'a', url: 'http://127.0.0.1:8081', front: 8080 });
const B = backendSetting({ name: 'b', url: 'http://127.0.0.1:8091' });
const PLACES = {
  backends: [A, B],
  views: [
    modelView({ backend: 'a', name: 'qwen' }),
    modelView({ backend: 'a', name: 'other' }),
    modelView({ backend: 'b', name: 'spare' }),
  ],
  ports: [7781],
};
const names = () => ({ has: (name: string) => name === 'workstation' });

function where(url: string, model: string | null) {
  const route = ownRoute(url, model, PLACES, names);
  if (route === null) return null;
  return route.ok
    ? [route.value.setting.name, route.value.view?.id ?? null, route.value.sentName]
    : route.error.code;
}

describe('an entry of the chain that is ours', () => {
  it('is a backend by its own port or its front, whatever its spelling', () => {
    for (const url of ['http://localhost:8081/v1', 'http://[::1]:8080', 'http://workstation:8081/'])
      expect(where(url, 'qwen')).toEqual(['a', 'a/qwen', 'qwen']);
  });

  it('has no model that its backend does not list', () => {
    expect(where('http://127.0.0.1:8081', 'nobody')).toBe('unknown_model');
  });

  it('is our own gateway: a name means there what it means to any client', () => {
    expect(where('http://127.0.0.1:7781/v1', 'b/spare')).toEqual(['b', 'b/spare', 'spare']);
    expect(where('http://127.0.0.1:7781/v1', 'spare')).toEqual(['b', 'b/spare', 'spare']);
    expect(where('http://127.0.0.1:7781/v1', 'nobody')).toBe('unknown_model');
  });

  it('is none elsewhere, nor another server of this machine', () => {
    expect(where('https://api.example.com/v1', 'qwen')).toBeNull();
    expect(where('http://127.0.0.1:9999/v1', 'qwen')).toBeNull();
  });
});
