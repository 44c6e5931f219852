import { describe, expect, it } from 'vitest';
import { withEmbeddedModel } from '../../../../electron/core/engine/add-model.ts';
import { looksForServers, watchedBackends } from '../../../../electron/core/engine/own-models.ts';
import { backendSetting } from '../../../support/backend-setting.ts';

describe('a model of our own in the config', () => {
  const added = (text: string | null, name = 'smol', file = '/m/smol.gguf'): string => {
    const made = withEmbeddedModel(text, name, file);
    if (!made.ok) throw new Error(made.error.message);
    return made.value.text;
  };

  it('begins a config where there is none', () => {
    const text = added(null);
    expect(text).toMatch(/^# yaml-language-server: .*\n+backends:\n/);
    expect(text).toMatch(/kind: embedded/);
    expect(text).toMatch(/smol: \/m\/smol\.gguf/);
  });

  it('comes beside other backends, and every comment stays', () => {
    const before =
      '# mine\nfloor: 3GB # for the desktop\nbackends:\n  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:8080" } # the big one\n';
    const text = added(before);
    for (const kept of ['# mine', 'floor: 3GB # for the desktop', '# the big one'])
      expect(text).toContain(kept);
    expect(text).toContain('embedded');
  });

  it('joins the models that are there, under the backend’s own name', () => {
    const before =
      'backends:\n  - name: local # ours\n    kind: embedded\n    models:\n      tiny: /m/tiny.gguf # small\n';
    const made = withEmbeddedModel(before, 'smol', '/m/smol.gguf');
    expect(made).toMatchObject({ value: { id: 'local/smol', before: null } });
    expect(added(before)).toBe(`${before}      smol: /m/smol.gguf\n`);
    const other = withEmbeddedModel(before, 'tiny', '/m/other.gguf');
    expect(other).toMatchObject({ value: { before: '/m/tiny.gguf' } });
  });

  it.each([
    ['a: [', 'smol'],
    ['backends: 3\n', 'smol'],
    ['backends:\n  - { name: embedded, kind: ollama, url: "http://127.0.0.1:11434" }\n', 'smol'],
    ['', 'a/b'],
    ['', '../x'],
  ])('changes nothing where it can not: %j', (text, name) => {
    expect(withEmbeddedModel(text, name, '/m.gguf')).toMatchObject({
      ok: false,
      error: { code: 'bad_input' },
    });
  });
});

describe('servers of this machine', () => {
  const embedded = backendSetting({ name: 'embedded', kind: 'embedded', url: null });
  const router = backendSetting({ name: 'router', kind: 'llama.cpp' });
  const found = [backendSetting({ name: 'ollama', kind: 'ollama', found: true })];

  it('are looked for beside our own models, and not beside servers that the config names', () => {
    expect(looksForServers(null)).toBe(true);
    expect(looksForServers([embedded])).toBe(true);
    expect(looksForServers([embedded, router])).toBe(false);
    expect(watchedBackends([embedded], found)).toEqual([embedded, ...found]);
    expect(watchedBackends([embedded, router], found)).toEqual([embedded, router]);
    expect(watchedBackends(null, found)).toEqual(found);
    // Nothing is to be seen: the config names an empty list.
    expect(watchedBackends([], found)).toEqual([]);
  });
});
