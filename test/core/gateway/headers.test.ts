import { describe, expect, it } from 'vitest';
import { answerHeaders, headerText, requestHeaders } from '../../../electron/core/gateway/headers.ts';

const ASKED = [
  'Host',
  'a',
  'Authorization',
  'Bearer k',
  'Cookie',
  'c=1',
  'X-Api-Key',
  'k',
  'Accept-Encoding',
  'gzip',
  'X-Landlord-Class',
  'batch',
  'X-Own',
  '1',
];

describe('a request on its way to a backend', () => {
  it('keeps the spelling, the order and the client’s own credentials', () => {
    expect(requestHeaders(ASKED, { contentLength: 5 })).toEqual([
      'Authorization',
      'Bearer k',
      'Cookie',
      'c=1',
      'X-Api-Key',
      'k',
      'Accept-Encoding',
      'gzip',
      'X-Own',
      '1',
      'content-length',
      '5',
    ]);
  });

  it('has the backend’s key where one is set, and none of ours where it opens our own door', () => {
    const keyed = requestHeaders(ASKED, { contentLength: undefined, apiKey: 'theirs' });
    expect(keyed).toContain('Bearer theirs');
    expect(keyed).not.toContain('Bearer k');
    expect(requestHeaders(ASKED, { contentLength: undefined, apiKey: null }).join()).not.toMatch(
      /authorization|x-api-key/i,
    );
  });

  it('carries nothing of the client’s credentials off this machine', () => {
    const sent = requestHeaders(ASKED, { contentLength: undefined, foreign: true, apiKey: null });
    expect(sent).toEqual(['Accept-Encoding', 'gzip', 'X-Own', '1']);
  });

  it('asks for plain text once the answer has begun', () => {
    const sent = requestHeaders(ASKED, { contentLength: undefined, identity: true });
    expect(sent.join()).toMatch(/accept-encoding,identity/);
    expect(sent).not.toContain('gzip');
  });
});

describe('an answer on its way to the client', () => {
  it('says only of us what we say ourselves', () => {
    const sent = answerHeaders(['x-landlord-route', 'fallback', 'Set-Cookie', 'a', 'Set-Cookie', 'b'], {
      'x-landlord-route': 'local',
    });
    expect(sent).toEqual(['Set-Cookie', 'a', 'Set-Cookie', 'b', 'x-landlord-route', 'local']);
  });

  it('can’t be made to say two headers by what a name has in it', () => {
    expect(headerText('busy\r\nset-cookie: x=1 — ü')).toBe('busy set-cookie: x=1');
  });
});
