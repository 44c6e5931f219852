import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { hostAndPort, isThisMachine } from '../../../electron/core/backends/own-address.ts';

describe('whose machine a backend is on', () => {
  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.3.2.1', '::1', '0.0.0.0', hostname()])(
    '%s is this one',
    (host) => expect(isThisMachine(host)).toBe(true),
  );

  it.each(['192.0.2.7', 'example.test', '', '2001:db8::1', 'localhost.example.test'])(
    '%j is not: no process here is its server',
    (host) => expect(isThisMachine(host)).toBe(false),
  );

  it('reads host and port of every spelling', () => {
    expect(hostAndPort('http://[::1]:8080')).toEqual({ host: '::1', port: 8080 });
    expect(hostAndPort('http://localhost')).toEqual({ host: 'localhost', port: 80 });
    expect(hostAndPort('https://box')).toEqual({ host: 'box', port: 443 });
    expect(hostAndPort('nonsense')).toEqual({ host: '', port: 0 });
  });
});
