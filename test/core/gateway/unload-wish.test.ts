import { describe, expect, it } from 'vitest';
import { isUnloadWish } from '../../../electron/core/gateway/unload-wish.ts';
import { backendSetting } from '../../support/backend-setting.ts';

const ollama = backendSetting({ name: 'ollama', kind: 'ollama' });

function isOne(path: string, body: unknown, front: typeof ollama | null = ollama, whole = true): boolean {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const head = { model: null, user: null, stream: false, bytes, spool: null, whole };
  return isUnloadWish({ front, path, head });
}

describe('a request that only unloads', () => {
  it.each([
    ['/api/generate', { model: 'm', keep_alive: 0 }],
    ['/api/generate?x=1', { model: 'm', prompt: '', keep_alive: '0s', stream: false }],
    ['/api/chat', { model: 'm', messages: [], keep_alive: '0' }],
    ['/api/chat/', { model: 'm', keep_alive: 0.0 }],
  ])('%s %j', (path, body) => expect(isOne(path, body)).toBe(true));

  it.each([
    ['/api/generate', { model: 'm', prompt: 'hello', keep_alive: 0 }],
    ['/api/chat', { model: 'm', messages: [{ role: 'user', content: 'hello' }], keep_alive: 0 }],
    ['/api/generate', { model: 'm' }],
    ['/api/generate', { model: 'm', keep_alive: '5m' }],
    ['/api/generate', { model: 'm', keep_alive: -1 }],
    ['/api/generate', { model: 'm', keep_alive: null }],
    // Ollama loads for it.
    ['/api/embed', { model: 'm', input: [], keep_alive: 0 }],
    ['/v1/chat/completions', { model: 'm', messages: [], keep_alive: 0 }],
    ['/api/generate', '[0]'],
    ['/api/generate', '{"model":"m","keep_alive":0'],
  ])('and %s %j does not', (path, body) => expect(isOne(path, body)).toBe(false));

  it('is one of Ollama’s front port only, and all there', () => {
    const body = { model: 'm', keep_alive: 0 };
    expect(isOne('/api/generate', body, backendSetting({ kind: 'llama.cpp' }))).toBe(false);
    expect(isOne('/api/generate', body, null)).toBe(false);
    expect(isOne('/api/generate', body, ollama, false)).toBe(false);
  });
});
