import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSecrets } from '../../../electron/core/security/secrets.ts';

const key = fc.oneof(
  fc.string({ minLength: 20, maxLength: 80 }).filter((text) => text.trim() === text),
  fc.stringMatching(/^[A-Za-z0-9+/]{24,40}={0,2}$/),
  fc.stringMatching(/^[a-z]{4}[0-9]{4,12}$/),
);
const around = fc.string({ unit: 'grapheme', maxLength: 60 });

describe('what is known to be a secret is in nothing that is told', () => {
  it('wherever it stands, and in whatever spelling', () => {
    const spelling = fc.constantFrom(
      (text: string) => text,
      encodeURIComponent,
      (text: string) => Buffer.from(text).toString('base64'),
      (text: string) => JSON.stringify(text),
    );
    fc.assert(
      fc.property(
        fc.array(key, { minLength: 1, maxLength: 4 }),
        around,
        around,
        spelling,
        (keys, before, after, as) => {
          const secrets = createSecrets();
          for (const one of keys) secrets.learn(one);
          for (const one of keys) {
            const told = secrets.hide(`${before}${as(one)}${after}`);
            expect(told).not.toContain(one);
            expect(told).not.toContain(as(one).replaceAll(/^"|"$|=+$/g, ''));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('of keys of which one begins with another, nothing of either is left', () => {
    const secrets = createSecrets();
    secrets.learn('abcd1234');
    secrets.learn('abcd1234-and-more');
    expect(secrets.hide('is abcd1234-and-more wrong, or abcd1234?')).toBe('is [hidden] wrong, or [hidden]?');
  });

  it('takes the value of an option of a command for one, in both ways to write it', () => {
    const secrets = createSecrets();
    secrets.learnFromCommand([
      'llama-server',
      '--api-key',
      'marker-one-1',
      '--hf-token=marker-two-2',
      '--port',
      '8080',
    ]);
    expect(secrets.hide('marker-one-1 marker-two-2 8080')).toBe('[hidden] [hidden] 8080');
  });

  it('leaves words alone that are written where no key is needed', () => {
    const secrets = createSecrets();
    for (const word of ['', ' ', null, undefined, 'none', 'ollama', 'lm-studio', 'sk-1']) secrets.learn(word);
    const text = 'none of ollama and lm-studio answers; see sk-1';
    expect(secrets.hide(text)).toBe(text);
  });
});

describe('what has the shape of a secret is in nothing that is told', () => {
  it.each([
    ['http://user:pa55-word@host:8080/v1 is down', 'pa55-word'],
    ['http://user:7+3//b+/h=@host:8080/v1 is down', '7+3//b+/h='],
    ['https://onlyname@host/', 'onlyname'],
    ['GET /v1/models?api_key=abc&x=1', 'abc'],
    ['GET /v1/models?x=1&access_token=abc%20d', 'abc%20d'],
    ['Incorrect API key provided: sk-proj-0123456789abcdef.', '0123456789abcdef'],
    ['sent Authorization: Bearer abcdef123456', 'abcdef123456'],
    ['sent authorization: abcdef123456', 'abcdef123456'],
    ['{"x-api-key":"abcdef123456"}', 'abcdef123456'],
    ['apiKey=abcdef123456;', 'abcdef123456'],
    ['password: hunter2hunter2', 'hunter2hunter2'],
    ['llama-server --api-key abcdef --port 1', 'abcdef'],
    ['llama-server --hf-token=abcdef', 'abcdef'],
    ['hf_abcdefghijklmnop', 'abcdefghijklmnop'],
    ['ghp_abcdefghijklmnopqrst', 'abcdefghijklmnopqrst'],
    ['AIzaSyA1234567890abcdef', '1234567890abcdef'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0xyz.c2lnbmF0dXJl', 'c2lnbmF0dXJl'],
    ['Basic dXNlcjpwYXNzd29yZA==', 'dXNlcjpwYXNzd29yZA'],
  ])('%s', (text, secret) => {
    const told = createSecrets().hide(text);
    expect(told).toContain('[hidden]');
    expect(told).not.toContain(secret);
  });

  it.each([
    'Send the token of the file `token` in the state directory as `authorization: Bearer …`.',
    'http://127.0.0.1:8080 wants an API key (status 401): name the variable that holds it as the backend’s apiKeyEnv.',
    'Unloaded big-a: room was asked for (6.0 GB free) and 5.0 GB was free.',
    'started with --api-key-file /run/keys/llama',
    'http://127.0.0.1:8080/v1 answers with status 500 (no reason), see mail@example.com',
    'max tokens = 4096, tokens: 12',
    'http://127.0.0.1:8080/v1/models/qwen@q4 answers with status 404',
    'asks-a-lot-of-questions-about-it is loaded',
  ])('and a sentence of ours stays as it is: %s', (text) => {
    expect(createSecrets().hide(text)).toBe(text);
  });

  it('takes no more time than the length of what a server sends asks for', () => {
    const secrets = createSecrets();
    // A pattern that looks at each place for the rest of the text would need hours for these.
    for (const text of ['a://', '--api-', 'key', 'x-', 'eyJ.', 'sk-', '?a-key', 'secret: ', 'http://a@'])
      expect(secrets.hide(text.repeat(200_000)).length).toBeGreaterThan(0);
  });
});
