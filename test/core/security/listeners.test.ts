import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { parseListeners, reachOf } from '../../../electron/core/security/listeners.ts';

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const row = (local: string, state: string, inode: number): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`;

describe('listening sockets', () => {
  it('are read with their addresses, and nothing else of the table is', () => {
    const table = `${HEAD}${row('0100007F:1E65', '0A', 11)}${row('00000000:1F90', '0A', 12)}${row('0502A8C0:0050', '0A', 13)}${row('0100007F:1E65', '01', 14)}garbage\n`;
    expect(parseListeners(table)).toEqual([
      { address: '127.0.0.1', port: 7781, inode: '11' },
      { address: '0.0.0.0', port: 8080, inode: '12' },
      { address: '192.168.2.5', port: 80, inode: '13' },
    ]);
  });

  it('of IPv6 are shortened, and mapped ones are IPv4', () => {
    const table = [
      row('00000000000000000000000000000000:1F90', '0A', 1),
      row('00000000000000000000000001000000:1F90', '0A', 2),
      row('0000000000000000FFFF00000100007F:1F90', '0A', 3),
      row('000080FE00000000FF005450B6AD1DFE:1F90', '0A', 4),
    ].join('');
    expect(parseListeners(table).map(({ address }) => address)).toEqual([
      '::',
      '::1',
      '127.0.0.1',
      'fe80::5054:ff:fe1d:adb6',
    ]);
  });

  it('are those of this machine', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const found = parseListeners(readFileSync('/proc/net/tcp', 'utf8')).filter((one) => one.port === port);
    await new Promise((resolve) => server.close(resolve));
    expect(found.map((one) => one.address)).toEqual(['127.0.0.1']);
  });

  it('reach the network unless they are of the loopback', () => {
    for (const address of ['127.0.0.1', '127.8.9.1', '::1']) expect(reachOf(address)).toBe('this machine');
    for (const address of ['0.0.0.0', '::', '192.168.2.5', 'fe80::1', '::1:2'])
      expect(reachOf(address)).toBe('the network');
  });
});
