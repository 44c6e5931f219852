import { describe, expect, it } from 'vitest';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';
import { settingsToYamlPatch, withYamlAt, yamlAt } from '../../../electron/core/settings/yaml-patch.ts';

const TEXT = `# My card.
floor: 4GB   # the desktop grows

pinned: [ bge-m3 ] # small
backends:
  # the router
  - name: router
    kind: llama.cpp
    url: "http://127.0.0.1:8080"
`;

function patched(text: string, path: readonly (string | number)[], value: unknown): string {
  const result = settingsToYamlPatch(text, path, value);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

describe('settingsToYamlPatch', () => {
  it('changes one value and keeps comments, order and quotes', () => {
    const changed = patched(TEXT, ['backends', 0, 'guards'], 'on');
    for (const kept of [
      '# My card.',
      '# the desktop grows',
      '# small',
      '# the router',
      '"http://127.0.0.1:8080"',
    ]) {
      expect(changed).toContain(kept);
    }
    const parsed = parseSettings(changed, 'config.yaml');
    expect(parsed.ok && parsed.value.backends?.[0]?.guards).toBe('on');
    expect(patched(TEXT, ['floor'], '6GB')).toContain('floor: 6GB # the desktop grows');
  });

  it('adds to an empty text, with the line that shows editors the schema', () => {
    const made = patched('', ['server', 'port'], 7000);
    expect(made).toContain('# yaml-language-server: $schema=config.schema.json');
    const parsed = parseSettings(made, 'config.yaml');
    expect(parsed.ok && parsed.value.server.port).toBe(7000);
    expect(patched('# only a note\n', ['maxBig'], 1)).toMatch(/# only a note\n+maxBig: 1\n/);
  });

  it('removes a key', () => {
    expect(patched(TEXT, ['floor'], undefined)).not.toContain('floor');
    expect(patched(TEXT, ['floor'], undefined)).toContain('# the router');
  });

  it.each([
    [['floor', 'hard'], TEXT],
    [['floor'], 'floor: [1'],
    [[], TEXT],
  ])('refuses %j as a value, not by throwing', (path, text) => {
    expect(settingsToYamlPatch(text, path, '1GB')).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  });
});

describe('one key, as a person types it', () => {
  const FILE = `# mine
floor: 4GB # for the two monitors
small:
  # residents
  - pipeline-9b
  # the embedder
  - bge-m3
cap: "90%"
`;

  it('keeps what stands around it, and the comment behind it', () => {
    expect(withYamlAt(FILE, 'floor', '6GB')).toEqual({
      ok: true,
      value: FILE.replace('4GB', '6GB'),
    });
    expect(withYamlAt(FILE, 'cap', '80%')).toEqual({ ok: true, value: FILE.replace('90%', '80%') });
  });

  it('takes a list or a mapping as it was typed, comments too', () => {
    const typed = '- qwen-27b # day\n- bge-m3\n';
    const changed = withYamlAt(FILE, 'pinned', typed);
    expect(changed.ok && changed.value).toContain('pinned:\n  - qwen-27b # day\n  - bge-m3\n');
    expect(changed.ok && changed.value.startsWith(FILE)).toBe(true);
  });

  it('takes a key out, and makes a file where there was none', () => {
    const out = withYamlAt(FILE, 'floor', null);
    expect(out.ok && out.value).not.toContain('floor');
    const fresh = withYamlAt('', 'floor', 'auto');
    expect(fresh.ok && fresh.value).toBe(
      '# yaml-language-server: $schema=config.schema.json\n\nfloor: auto\n',
    );
  });

  it('changes nothing where either is no YAML', () => {
    expect(withYamlAt('a: [', 'floor', '4GB')).toMatchObject({ error: { code: 'bad_input' } });
    expect(withYamlAt(FILE, 'floor', '{ keep: ')).toMatchObject({ error: { code: 'bad_input' } });
  });

  it('shows what stands for a key as it would be typed anew', () => {
    expect(yamlAt(FILE, 'floor')).toBe('4GB');
    expect(yamlAt(FILE, 'cap')).toBe('"90%"');
    expect(yamlAt(FILE, 'small')).toBe('- pipeline-9b\n# the embedder\n- bge-m3');
    expect(yamlAt(FILE, 'ttl')).toBeNull();
    expect(yamlAt('ttl:\n', 'ttl')).toBeNull();
  });
});
