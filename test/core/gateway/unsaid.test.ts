import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutKeys } from '../../../electron/core/gateway/fallback.ts';
import { unsaidOf } from '../../../electron/core/gateway/unsaid.ts';

describe('a key of ours in an error that goes to a client', () => {
  it('is gone however the answer is cut, and the rest is what it was, byte for byte', () => {
    const key = fc.stringMatching(/^[A-Za-z0-9-]{8,40}$/);
    fc.assert(
      fc.property(
        key,
        fc.array(fc.option(fc.string({ maxLength: 30 }))),
        fc.array(fc.nat(20)),
        (one, parts, cuts) => {
          const said = Buffer.from(parts.map((part) => part ?? one).join(''));
          const body = unsaidOf(one)?.body();
          const out: Buffer[] = [];
          let at = 0;
          for (const size of [...cuts, said.length]) {
            // A kept buffer may be written over by its owner.
            const chunk = Buffer.from(said.subarray(at, at + size));
            out.push(Buffer.from(body?.write(chunk) ?? []));
            at += size;
          }
          out.push(body?.end() ?? Buffer.alloc(0));
          const told = Buffer.concat(out);
          expect(told.includes(one)).toBe(false);
          expect(told.length).toBe(said.length);
          expect(told.toString()).toBe(said.toString().replaceAll(one, '*'.repeat(one.length)));
        },
      ),
    );
  });

  it('is in no header either, and a word that is no key hides nothing', () => {
    expect(unsaidOf('secret-key-1')?.headers(['x-said', 'key secret-key-1 is wrong'])).toEqual([
      'x-said',
      'key ************ is wrong',
    ]);
    for (const word of [null, '', 'none', 'ollama']) expect(unsaidOf(word)).toBeNull();
  });
});

describe('what a client proves to us in its address', () => {
  it.each([
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions?', '/v1/chat/completions'],
    ['/v1/chat/completions?api_key=abc', '/v1/chat/completions'],
    ['/v1/models?key=abc&limit=2&access_token=d', '/v1/models?limit=2'],
    ['/v1/files?a=1&b=?x&API-KEY=2', '/v1/files?a=1&b=?x'],
  ])('goes to no other machine: %s', (path, sent) => {
    expect(withoutKeys(path)).toBe(sent);
  });
});
