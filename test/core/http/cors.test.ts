import { describe, expect, it } from 'vitest';
import { corsHeaders, isListedOrigin, preflightHeaders } from '../../../electron/core/http/cors.ts';

const PAGE = 'https://chat.example';
const asking = (url: string, origin?: string) => ({ url, headers: origin === undefined ? {} : { origin } });

describe('pages of other origins', () => {
  it('may use /v1 where the config lists them, and nothing else', () => {
    expect(isListedOrigin(asking('/v1/chat/completions', PAGE), [PAGE])).toBe(true);
    expect(isListedOrigin(asking('/v1?x', 'https://CHAT.example'), [PAGE])).toBe(true);
    for (const url of ['/api/state', '/', '/v11/x', '/metrics', '/v1x'])
      expect(isListedOrigin(asking(url, PAGE), [PAGE]), url).toBe(false);
    for (const origin of ['https://chat.example.evil', 'http://chat.example', 'null', undefined])
      expect(isListedOrigin(asking('/v1/x', origin), [PAGE])).toBe(false);
    expect(isListedOrigin(asking('/v1/x', PAGE), [])).toBe(false);
  });

  it('are told what they may send, and read', () => {
    const headers = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
      'access-control-request-private-network': 'true',
    };
    expect(preflightHeaders({ method: 'OPTIONS', headers })).toMatchObject({
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-allow-private-network': 'true',
    });
    expect(preflightHeaders({ method: 'OPTIONS', headers: {} })).toBeNull();
    expect(preflightHeaders({ method: 'POST', headers })).toBeNull();
    expect(corsHeaders(PAGE)).toMatchObject({ 'access-control-allow-origin': PAGE, vary: 'Origin' });
  });
});
