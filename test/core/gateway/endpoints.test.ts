import { describe, expect, it } from 'vitest';
import { dialectOf, isPlainPath, streamsEvents, workOf } from '../../../electron/core/gateway/endpoints.ts';
import { fallbackModel, keyHeaders, upstreamPath } from '../../../electron/core/gateway/fallback.ts';

describe('what a path asks', () => {
  it('takes the lane for what generates, never for embeddings, rerank, lists and counts', () => {
    for (const path of [
      '/v1/chat/completions',
      '/v1/completions',
      '/v1/responses',
      '/v1/messages',
      '/completion',
      '/infill',
      '/v1/images/generations',
      '/v1/audio/speech',
      '/v1/chat/completions?x=1',
      '/v1/messages/',
      // As llama-server reads them.
      '/v1/chat%2Fcompletions',
      '/v1/chat/completion%73?x=%zz',
      // Ollama's, LM Studio's and Lemonade's own.
      '/api/chat',
      '/api/generate',
      '/api/v0/chat/completions',
      '/api/v1/chat',
      '/api/v1/chat/completions',
      // llama-swap's own.
      '/v/chat/completions',
      '/v/messages',
      '/sdapi/v1/txt2img',
      '/sdapi/v1/img2img',
    ])
      expect(workOf('POST', path), path).toBe('generate');
    for (const path of [
      '/v1/embeddings',
      '/v1/rerank',
      '/reranking',
      '/v1/messages/count_tokens',
      '/v1/responses/input_tokens',
      '/v1/chat/completions/input_tokens',
      '/v1/score',
      '/tokenize',
      '/api/embed',
      '/api/embeddings',
      '/api/v0/embeddings',
      '/v/embeddings',
      // llama.cpp's router loads the model for these as well (build 11669).
      '/props',
      '/slots/0?action=erase',
      '/lora-adapters',
      '/v1/chat/completions/control',
      '/v1/audio/voices',
    ])
      expect(workOf('POST', path), path).toBe('compute');
    for (const path of ['/v1/models', '/props', '/slots', '/lora-adapters', '/v1/chat/completions'])
      expect(workOf('GET', path)).toBe('other');
    for (const path of ['/v1/chat%zzcompletions', '/v1/chat%252Fcompletions'])
      expect(workOf('POST', path), path).toBe('other');
    for (const path of ['/models/load', '/api/show', '/api/v1/models/load', '/api/v1/load', '/api/pull'])
      expect(workOf('POST', path), path).toBe('other');
  });

  it('has a stream of events, save Ollama’s own lines of JSON', () => {
    for (const path of ['/v1/chat/completions', '/v1/messages', '/completion', '/api/v1/chat'])
      expect(streamsEvents(path), path).toBe(true);
    for (const path of ['/api/chat', '/api/generate?x=1']) expect(streamsEvents(path), path).toBe(false);
  });

  it('has Anthropic’s errors on its paths alone', () => {
    expect(dialectOf('/v1/messages')).toBe('anthropic');
    expect(dialectOf('/v1/messages/count_tokens')).toBe('anthropic');
    expect(dialectOf('/v1/chat/completions')).toBe('openai');
  });
});

describe('an entry of the fallback chain', () => {
  const entry = {
    name: 'cloud',
    url: 'https://a.example/v1',
    apiKeyEnv: null,
    models: { 'qwen-27b': 'big', '*': 'any' },
  };

  it('has its own name for a model, or one for all, or the same', () => {
    expect(fallbackModel(entry, 'router/qwen-27b', 'router')).toBe('big');
    expect(fallbackModel(entry, 'other', 'router')).toBe('any');
    expect(fallbackModel(entry, null, 'router')).toBe('any');
    const same = { ...entry, models: {} };
    expect(fallbackModel(same, 'router/other', 'router')).toBe('other');
    // As llama.cpp's router names what it has in its cache.
    expect(fallbackModel(same, 'ggml-org/gemma-3:Q4_K_M', 'router')).toBe('ggml-org/gemma-3:Q4_K_M');
    const full = { ...entry, models: { 'router/qwen-27b': 'that', 'qwen-27b': 'any' } };
    expect(fallbackModel(full, 'qwen-27b', 'router')).toBe('that');
  });

  it('is asked at its own path, whether its URL ends in /v1 or not', () => {
    expect(upstreamPath('https://a.example/v1', '/v1/chat/completions').path).toBe('/v1/chat/completions');
    expect(upstreamPath('https://a.example/api/v1/', '/v1/x?y=1')).toEqual({
      origin: 'https://a.example',
      path: '/api/v1/x?y=1',
    });
    expect(upstreamPath('http://127.0.0.1:1', '/v1/x').path).toBe('/v1/x');
  });
});

describe('a path that does not mean what it says is refused', () => {
  it.each([
    '/v1/../admin',
    '/v1/%2e%2e/models',
    '/v1/%2E./x',
    '/v1/..%2fadmin',
    '/v1/chat/./completions',
    '/v1/..',
    '/v1/.',
    '/v1/..\\admin',
    '/v1/..?x=1',
    'http://169.254.169.254/latest',
    '*',
    '',
    'v1/models',
    // llama-server (build 11669) takes these for /v1/chat/completions, and that for `model=m`.
    '/v1/chat/completions#x',
    '/v1/chat/completion%u0073',
    '/props?model=m#x',
  ])('%s', (path) => {
    expect(isPlainPath(path)).toBe(false);
  });

  it.each([
    '/v1/models',
    '/v1/models/a..b',
    '/v1/models/..hidden',
    '/v1/models/model.gguf?x=../y',
    '/v1/models?x=%u0073',
    '/',
    '/v1/files/%zz',
    '/index.html',
  ])('and %s is none', (path) => {
    expect(isPlainPath(path)).toBe(true);
  });

  it('is shown our key as it takes it, and Anthropic’s own servers no key where they look for a login', () => {
    const at = (origin: string, dialect: 'openai' | 'anthropic', key: string | null) => {
      const { bearer, apiKey } = keyHeaders(origin, dialect, key);
      return [bearer, apiKey];
    };
    expect(at('https://a.example', 'openai', 'k')).toEqual(['k', null]);
    expect(at('https://a.example', 'anthropic', 'k')).toEqual(['k', 'k']);
    expect(at('https://api.anthropic.com', 'anthropic', 'sk-ant-api03-k')).toEqual([null, 'sk-ant-api03-k']);
    expect(at('https://api.anthropic.com', 'anthropic', 'sk-ant-oat01-k')).toEqual(['sk-ant-oat01-k', null]);
    expect(at('https://api.anthropic.com', 'openai', 'sk-ant-api03-k')).toEqual(['sk-ant-api03-k', null]);
    expect(at('https://notanthropic.com', 'anthropic', 'k')).toEqual(['k', 'k']);
    expect(at('https://api.anthropic.com', 'anthropic', null)).toEqual([null, null]);
  });
});
