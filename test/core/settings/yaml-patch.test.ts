import { describe, expect, it } from 'vitest';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';
import { settingsToYamlPatch } from '../../../electron/core/settings/yaml-patch.ts';

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
