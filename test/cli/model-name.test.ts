import { describe, expect, it } from 'vitest';
import { resolveModelName } from '../../electron/cli/model-name.ts';

const IDS = ['router/qwen', 'router/org/llama', 'ollama/qwen', 'ollama/router/qwen'];

describe('the model a person means', () => {
  it('is the exact id before anything else', () => {
    expect(resolveModelName('router/qwen', IDS)).toEqual({ ok: true, value: 'router/qwen' });
  });

  it('is the only one of that name, which may hold slashes', () => {
    expect(resolveModelName('org/llama', IDS)).toEqual({ ok: true, value: 'router/org/llama' });
  });

  it('is never guessed: several of a name are listed, part of a name is none', () => {
    expect(resolveModelName('qwen', IDS)).toMatchObject({
      ok: false,
      error: { code: 'bad_input', message: expect.stringContaining('router/qwen, ollama/qwen') },
    });
    expect(resolveModelName('llama', IDS)).toMatchObject({ ok: false, error: { code: 'unknown_model' } });
    expect(resolveModelName('qwen', [])).toMatchObject({ ok: false, error: { code: 'unknown_model' } });
  });
});
