import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalHost, type LocalNames, laneKey } from '../../../electron/core/gate/lane-key.ts';

const NOBODY: LocalNames = { has: () => false };
const key = (url: string, own: readonly string[] = []) =>
  laneKey(url, () => (own.length === 0 ? NOBODY : { has: (name) => own.includes(name) }));

describe('one backend is one key, however its URL is written (rule 15)', () => {
  it.each([
    'http://127.0.0.1:8080',
    'http://127.0.0.1:8080/',
    'http://127.0.0.1:8080/v1',
    'http://127.0.0.1:8080/v1/',
    'http://127.0.0.1:8080/v1/chat/completions?x=1#y',
    'HTTP://LOCALHOST:8080/v1',
    'http://localhost.:8080',
    'http://localhost:08080',
    'http://user:secret@localhost:8080/v1',
    'http://[::1]:8080/v1',
    'http://[0:0:0:0:0:0:0:1]:8080',
    'http://[::1%25lo]:8080',
    'http://[::1%lo]:8080',
    'http://[::ffff:127.0.0.1]:8080',
    'http://[::ffff:7f00:1]:8080',
    'http://[::]:8080',
    'http://0.0.0.0:8080',
    'http://127.9.8.7:8080',
    'http://127.1:8080',
    'http://2130706433:8080',
    'http://0x7f000001:8080',
    'http://0177.0.0.1:8080',
    'http://api.localhost:8080',
    'https://127.0.0.1:8080',
    'ws://127.0.0.1:8080',
    '  http://localhost:8080  ',
    'localhost:8080',
    '127.0.0.1:8080/v1',
    '//localhost:8080',
    '[::1]:8080',
    ':8080',
    'http:/localhost:8080',
    'http:localhost:8080/v1',
    'http:\\\\localhost:8080',
    'http:///localhost:8080',
    'HTTP:\\127.0.0.1:8080\\v1',
    'http://loc\talhost:80\n80',
    'ws:/[::1]:8080',
    'http://%6cocalhost:8080',
  ])('%s', (url) => {
    expect(key(url)).toEqual({ kind: 'local', host: '127.0.0.1', port: 8080, name: '127.0.0.1_8080' });
  });

  it('takes the port the scheme means where none is written', () => {
    expect(key('http://localhost/v1')).toMatchObject({ port: 80 });
    expect(key('https://localhost/v1')).toMatchObject({ port: 443 });
    expect(key('https://localhost:80/v1')).toMatchObject({ port: 80 });
    expect(key('http://localhost:443')).toMatchObject({ port: 443 });
    expect(key('::1')).toMatchObject({ port: 80 });
  });

  it('counts every name and address this machine has itself, in any spelling', () => {
    const own = ['box', '192.168.4.2', 'fe80::1:2', '2001:db8::7'];
    for (const host of [
      'box',
      'BOX.',
      '192.168.4.2',
      '3232236546',
      '[::ffff:192.168.4.2]',
      '[fe80::1:2%25eth0]',
    ])
      expect(key(`http://${host}:8080`, own), host).toMatchObject({ name: '127.0.0.1_8080' });
    expect(key('http://[2001:0DB8:0:0::7]:8080', own)).toMatchObject({ name: '127.0.0.1_8080' });
  });

  it('gives random loopback spellings one key and no two ports the same', () => {
    const spelling = fc.oneof(
      fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map((rest) => `127.${rest.join('.')}`),
      fc.constantFrom('localhost', 'LocalHost', '[::1]', '0.0.0.0', '[::ffff:7f01:203]', 'a.b.localhost'),
    );
    fc.assert(
      fc.property(
        spelling,
        fc.integer({ min: 1, max: 65535 }),
        fc.constantFrom('', '/', '/v1'),
        (host, port, path) => {
          expect(key(`http://${host}:${port}${path}`)).toMatchObject({ name: `127.0.0.1_${port}` });
        },
      ),
    );
  });

  it('never throws, and asks for this machine’s names only where the spelling is not loopback', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(['local', 'remote', 'invalid']).toContain(key(text).kind);
      }),
    );
    const asked: string[] = [];
    const names = (): LocalNames => ({ has: (name) => asked.push(name) < 0 });
    laneKey('http://localhost:1', names);
    expect(asked).toEqual([]);
    expect(laneKey('http://api.example.com', names)).toEqual({ kind: 'remote', host: 'api.example.com' });
    expect(asked).toEqual(['api.example.com']);
  });
});

describe('what is no local backend', () => {
  it.each([
    'https://api.example.com/v1',
    'http://192.168.4.3:8080',
    'http://128.0.0.1:8080',
    'http://localhost.example.com:8080',
    'http://127.0.0.1.example.com:8080',
    'http://notlocalhost:8080',
    'http://[::2]:8080',
    'http://user@127.0.0.1@evil.example:8080',
  ])('%s is another machine: the gate is skipped', (url) => {
    expect(key(url, ['box', '192.168.4.2']).kind).toBe('remote');
  });

  it.each([
    '',
    '8080',
    'http://',
    'http://localhost:0',
    'http://localhost:99999',
    'unix:///run/x.sock',
    'grpc://localhost',
    '%%%',
  ])('“%s” is told to be no URL rather than taken for some machine', (url) => {
    expect(key(url).kind).toBe('invalid');
  });
});

it('canonicalHost has one form for one address', () => {
  expect(canonicalHost('[2001:DB8:0:0:0:0:0:1]')).toBe('2001:db8::1');
  expect(canonicalHost('FE80::1%eth0')).toBe('fe80::1');
  expect(canonicalHost('::ffff:10.0.0.1')).toBe('10.0.0.1');
  expect(canonicalHost('Host.Example.')).toBe('host.example');
});
