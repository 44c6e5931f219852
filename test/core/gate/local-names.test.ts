import { describe, expect, it } from 'vitest';
import { localNames, parseHosts, readLocalNames } from '../../../electron/core/gate/local-names.ts';

const HOSTS = `# static
127.0.0.1   localhost
127.0.1.1   desk.lan desk   # this one
192.168.7.5 desk-wired models.internal
192.168.7.9 other-box
::1         ip6-localhost
fe80::1%lo0 zoned
broken
`;

describe('the names of this machine, without DNS', () => {
  const names = localNames({ hostname: 'Desk', addresses: ['192.168.7.5', 'fe80::a:1'], hosts: HOSTS });

  it('counts its addresses, its hostname, and what /etc/hosts calls one of these', () => {
    for (const name of [
      '192.168.7.5',
      'fe80::a:1',
      'desk',
      'desk.local',
      'desk.lan',
      'desk-wired',
      'models.internal',
    ])
      expect(names.has(name), name).toBe(true);
  });

  it('does not count another machine of /etc/hosts', () => {
    for (const name of ['other-box', '192.168.7.9', 'broken', 'example.com', ''])
      expect(names.has(name), name).toBe(false);
  });

  it('knows a full hostname by its short form too', () => {
    const full = localNames({ hostname: 'rig.home.arpa', addresses: [], hosts: '' });
    expect(['rig.home.arpa', 'rig', 'rig.local'].every((name) => full.has(name))).toBe(true);
  });

  it('reads hosts(5) with comments, tabs and CRLF', () => {
    expect(parseHosts('10.0.0.1\tA b # c\r\n#no\r\n')).toEqual([{ address: '10.0.0.1', names: ['a', 'b'] }]);
  });

  it('reads this very machine', () => {
    expect(readLocalNames().has('127.0.0.1')).toBe(true);
  });
});
