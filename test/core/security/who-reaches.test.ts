import { describe, expect, it } from 'vitest';
import { type SecurityFacts, whoReachesWhat } from '../../../electron/core/security/who-reaches.ts';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';
import type { Settings } from '../../../shared/settings.ts';

function settings(yaml: string): Settings {
  const parsed = parseSettings(yaml, '/home/me/config.yaml', '/home/me');
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

const file = (path: string, mode: number, uid = 1000) => ({ path, mode, uid });

const SAFE: SecurityFacts = {
  uid: 1000,
  listeners: [
    { address: '127.0.0.1', port: 7781, inode: '1' },
    { address: '127.0.0.1', port: 8080, inode: '2' },
    { address: '127.0.0.1', port: 8082, inode: '3' },
    { address: '127.0.0.1', port: 40123, inode: '4' },
  ],
  runtime: { pid: 7, port: 7781, ports: [7781, 8082, 40123] },
  stateDir: file('/s', 0o700),
  token: file('/s/token', 0o600),
  database: file('/s/landlord.db', 0o600),
  socket: file('/s/landlord.sock', 0o600),
  gateRoot: { path: '/g', from: 'passwd' },
  gateFolder: file('/g', 0o700),
  config: file('/c/config.yaml', 0o644),
  configDir: file('/c', 0o755),
  settings: settings(
    'backends:\n  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:8080", front: 8082 }\n',
  ),
  serverPorts: [8080],
};

const failed = (change: Partial<SecurityFacts>): readonly string[] =>
  whoReachesWhat({ ...SAFE, ...change }).flatMap(({ name, outcome }) => (outcome === 'failed' ? [name] : []));
const says = (change: Partial<SecurityFacts>): string =>
  whoReachesWhat({ ...SAFE, ...change })
    .map(({ name, outcome, detail }) => `${outcome} ${name}: ${detail.join(' ')}`)
    .join('\n');

describe('who can reach what', () => {
  it('names every way in, and finds nothing wrong where all is as we make it', () => {
    expect(failed({})).toEqual([]);
    const text = says({});
    for (const way of [
      'page and /api',
      '/v1, /metrics and /healthz: no key is set',
      'web pages: no page of another origin',
      'front port of router: port 8082',
      'embedded engine, port 40123',
      'token: /s/token (mode 0600)',
      'state folder',
      'log: /s/landlord.db',
      'ledger socket',
      'lanes: /g: its owner alone',
      'server router: port 8080 at 127.0.0.1',
    ])
      expect(text).toContain(way);
  });

  it('says what opens with a key and with listed pages', () => {
    const text = says({
      settings: settings('server: { apiKeyEnv: KEY, origins: ["https://chat.example"] }\n'),
    });
    expect(text).toContain('only who sends the key of KEY');
    expect(text).toContain('pages of https://chat.example may use /v1, and nothing else');
  });

  it('fails for a server that the network reaches, named or not, on any address that is not the loopback', () => {
    for (const address of ['0.0.0.0', '::', '192.168.2.5'])
      expect(failed({ listeners: [{ address, port: 8080, inode: '2' }] })).toEqual(['server router']);
    const listeners = [...(SAFE.listeners ?? []), { address: '0.0.0.0', port: 11434, inode: '9' }];
    expect(failed({ listeners, serverPorts: [8080, 11434] })).toEqual(['server at port 11434']);
  });

  it('fails for files that others can open, or own', () => {
    expect(failed({ token: file('/s/token', 0o640) })).toEqual(['token']);
    expect(failed({ token: file('/s/token', 0o600, 0) })).toEqual(['token']);
    expect(failed({ stateDir: file('/s', 0o755) })).toEqual(['state folder']);
    expect(failed({ database: file('/s/landlord.db', 0o644) })).toEqual(['log']);
    expect(failed({ socket: file('/s/landlord.sock', 0o666) })).toEqual(['ledger socket']);
    expect(failed({ gateFolder: file('/g', 0o777) })).toEqual(['lanes']);
    expect(failed({ gateFolder: file('/g', 0o700, 1001) })).toEqual(['lanes']);
  });

  it('says of a shared root that every user can hold others up there', () => {
    const gateRoot = { path: '/var/lib/vram-landlord/gates', from: 'machine-wide' } as const;
    expect(says({ gateRoot, gateFolder: file(gateRoot.path, 0o1777, 0) })).toContain(
      'ok lanes: /var/lib/vram-landlord/gates is shared: every user',
    );
  });

  it('says that it can not tell, rather than that all is well', () => {
    const text = says({ listeners: null, runtime: null, token: null });
    expect(text).toContain('skipped page and /api');
    expect(text).toContain('skipped token');
    expect(text).toContain('skipped server router: sockets can not be read here');
  });

  it('tells of a server elsewhere that is spoken to in the clear', () => {
    const away = settings('backends:\n  - { name: big, kind: llama.cpp, url: "http://192.0.2.7:8080" }\n');
    expect(says({ settings: away })).toContain('server big: it is on 192.0.2.7, and prompts');
  });

  it('fails where others can write the config, which names programs that are started', () => {
    expect(failed({ config: file('/c/config.yaml', 0o664) })).toEqual(['settings']);
    expect(failed({ configDir: file('/c', 0o777) })).toEqual(['settings']);
    expect(failed({ config: file('/c/config.yaml', 0o644, 1001) })).toEqual(['settings']);
    expect(failed({ configDir: file('/tmp', 0o1777, 0) })).toEqual([]);
    // An administrator's is fine, and so is none.
    expect(failed({ config: file('/etc/landlord.yaml', 0o644, 0) })).toEqual([]);
    expect(failed({ config: null, configDir: null })).toEqual([]);
  });

  it('says what leaves the machine, with whose key, and what of it in the clear', () => {
    const text = says({
      settings: settings(
        'fallbacks:\n  - { name: cloud, url: "https://api.example.com/v1", apiKeyEnv: CLOUD_KEY }\n  - { name: box, url: "http://10.0.0.9:8080" }\n',
      ),
    });
    expect(text).toContain(
      'ok fallback cloud: turns that find no room here are sent to api.example.com, with the key of CLOUD_KEY.',
    );
    expect(text).toContain(
      'ok fallback box: turns that find no room here are sent to 10.0.0.9, all of it in the clear.',
    );
  });
});
