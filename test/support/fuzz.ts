import { randomBytes } from 'node:crypto';

type Random = (below: number) => number;

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'CONNECT',
  'TRACE',
  'BREW',
  '',
  '\0',
];
const PATHS = [
  '/',
  '/healthz',
  '/api/state',
  '/api/events',
  '/api/stream',
  '/api/models/%2e%2e%2f/load',
  '/api/models/%ff%fe/unload',
  '/api/models/a%00b/pin',
  '/api/reservations',
  '/api/turns',
  '/v1/chat/completions',
  '/v1/models',
  '/v1/../api/state',
  '//127.0.0.1/api/state',
  'http://other.example/api/state',
  '*',
  '/assets/..%2f..%2f..%2fetc%2fpasswd',
  '/../../../../etc/passwd',
  '/%',
  '/%zz',
  '/?key=%',
];
const FIELDS = [
  'content-length: -1',
  'content-length: 99999999999999999999',
  'content-length: 5, 6',
  'content-length: 0x10',
  'content-length : 4',
  'transfer-encoding: chunked',
  'transfer-encoding: chunked, identity',
  'transfer-encoding:\tchunked',
  'transfer-encoding: xchunked',
  'content-type: application/json',
  'content-type: multipart/form-data; boundary=',
  'expect: 100-continue',
  'upgrade: websocket\r\nconnection: upgrade',
  'authorization: Bearer \xff\xfe',
  'cookie: =;;;===;landlord',
  'last-event-id: 99999999999999999999999',
  'x-landlord-session: \x80\x81',
  'x-landlord-class: purple',
  'x-landlord-turn: ../../../etc/passwd',
  'connection: close, keep-alive, content-length, host',
  'origin: null',
  ' folded: value',
  'no colon at all',
  ':',
  'a\0b: c',
];
const BODIES = [
  '',
  '{}',
  '{"model":"tiny","messages":[]}',
  '{"model":',
  '[[[[[[[[[[[[',
  '{"__proto__":{"force":true}}',
  '{"model":"\ud800"}',
  '5\r\nabcde\r\n0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '-1\r\n\r\n',
  '0\r\n\r\nGET /api/state HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n',
  '\xff\xfe\xfd',
];

/** One connection's worth of what a broken or ill-meaning client sends. */
export function hostileHttp(random: Random, port: number): Buffer {
  const pick = <T>(from: readonly T[]): T => {
    const one = from[random(from.length)];
    if (one === undefined) throw new Error('an empty list');
    return one;
  };
  const kind = random(10);
  if (kind === 0) return randomBytes(1 + random(4096));
  const line = `${pick(METHODS)} ${pick(PATHS)} ${pick(['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9', ''])}`;
  const fields = Array.from({ length: random(6) }, () => pick(FIELDS));
  const host = random(5) === 0 ? 'host: other.example' : `host: 127.0.0.1:${port}`;
  const end = random(8) === 0 ? '\n' : '\r\n';
  const text = [line, host, ...fields, '', pick(BODIES)].join(end);
  const bytes = Buffer.from(text, 'latin1');
  // Some of it is cut short, and some has a byte that was not meant.
  if (kind === 1) return bytes.subarray(0, random(bytes.length));
  if (kind === 2 && bytes.length > 0) bytes[random(bytes.length)] = random(256);
  return bytes;
}

const WORDS = [
  'HELP',
  'STATUS',
  'LIST',
  'REGISTER',
  'UNREGISTER',
  'DECODE',
  'decode',
  '',
  '\0',
  'OK',
  'GET / HTTP/1.1',
];
const ARGUMENTS = [
  'smol',
  '-1',
  '999999999999',
  '\t',
  '/etc/passwd',
  '/dev/zero',
  '../..',
  '\xff\xfe',
  'a'.repeat(5000),
  '$(id)',
];

/** Lines for the ledger socket. */
export function hostileLines(random: Random): Buffer {
  const lines = Array.from({ length: 1 + random(8) }, () => {
    if (random(6) === 0) return randomBytes(random(600)).toString('latin1');
    const words = Array.from({ length: random(5) }, () => ARGUMENTS[random(ARGUMENTS.length)] ?? '');
    return [WORDS[random(WORDS.length)] ?? '', ...words].join(random(3) === 0 ? '\t' : ' ');
  });
  return Buffer.from(lines.join(random(5) === 0 ? '\r\n' : '\n') + (random(4) === 0 ? '' : '\n'), 'latin1');
}
