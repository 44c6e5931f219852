import { describe, expect, it } from 'vitest';
import { httpClient } from '../../../electron/core/backends/http.ts';
import { keyFrom, missingKeys } from '../../../electron/core/security/key-from.ts';
import { secrets } from '../../../electron/core/security/secrets.ts';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';

describe('a key and its variable', () => {
  it('is taken without the line end of the file it came from, and is a secret from then on', () => {
    expect(keyFrom({ KEY: ' marker-key-77\r\n' }, 'KEY')).toBe('marker-key-77');
    expect(secrets.hide('it said marker-key-77')).toBe('it said [hidden]');
    expect(keyFrom({ KEY: '\n' }, 'KEY')).toBeNull();
    expect(keyFrom({}, 'KEY')).toBeNull();
    expect(keyFrom({ KEY: 'x' }, null)).toBeNull();
  });

  it('that is named and not set is told, each with what follows', () => {
    const parsed = parseSettings(
      [
        'server: { apiKeyEnv: DOOR }',
        'backends:',
        '  - { name: a, kind: openai, url: "http://127.0.0.1:1", apiKeyEnv: A_KEY }',
        'fallbacks:',
        '  - { name: cloud, url: "https://api.example.com/v1", apiKeyEnv: CLOUD_KEY }',
      ].join('\n'),
      'c.yaml',
    );
    if (!parsed.ok) throw new Error(parsed.error.message);
    const told = missingKeys({ A_KEY: 'there' }, parsed.value).join('\n');
    expect(told).toMatch(/^The variable DOOR .*closed to all who have no token/);
    expect(told).toContain('The variable CLOUD_KEY of cloud is not set');
    expect(told).not.toContain('A_KEY');
    expect(missingKeys({ A_KEY: 'a', DOOR: 'b', CLOUD_KEY: 'c' }, parsed.value)).toEqual([]);
  });

  it('that no header can carry is told by every request, which throws nothing and sends nothing', async () => {
    const client = httpClient('http://127.0.0.1:9', 'two\nlines-of-a-key');
    const told = { kind: 'failed', message: expect.stringContaining('the variable that holds it') };
    expect(await client.get('/v1/models')).toMatchObject(told);
    expect(await client.post('/x', {})).toMatchObject(told);
    const handlers = { onOpen: () => {}, onText: () => {}, signal: new AbortController().signal };
    expect(await client.stream('/events', handlers)).toMatchObject(told);
  });
});
