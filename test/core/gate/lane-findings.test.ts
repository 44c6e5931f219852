import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { laneBypassed } from '../../../electron/core/gate/lane-bypassed.ts';
import { laneStuck } from '../../../electron/core/gate/lane-stuck.ts';
import { establishedIn, localClients, peersOf } from '../../../electron/core/gate/local-clients.ts';
import type { LaneState } from '../../../shared/state.ts';
import { startOther } from '../../support/gate.ts';

const LANE: LaneState = {
  backend: 'router',
  configured: true,
  path: '/r/127.0.0.1_8080.lock',
  width: 1,
  held: true,
  holders: [
    { pid: 7, command: 'agent', session: 'writer', model: null, class: null, turn: 't', acquiredAt: null },
  ],
  waiting: 1,
};
const NOW = 1_000_000;
const history = (busyPercent: number | null, count = 12) =>
  Array.from({ length: count }, (_, index) => ({ atMs: NOW - (count - 1 - index) * 5000, busyPercent }));
const stuck = (over: Partial<Parameters<typeof laneStuck>[0]> = {}) =>
  laneStuck({ lane: LANE, heldSinceMs: NOW - 400_000, nowMs: NOW, busyHistory: history(1), ...over });

describe('a lane that is stuck', () => {
  it('is held for long with an idle device; told with who and for how long', () => {
    expect(stuck()).toMatchObject({
      session: 'writer',
      numbers: { heldMs: 400_000, busyPercent: 1, pid: 7 },
    });
    expect(stuck()?.reason).toContain('held by session writer for 6 min');
  });

  it.each([
    ['held shortly', { heldSinceMs: NOW - 299_000 }],
    ['not held', { lane: { ...LANE, holders: [] } }],
    ['held since when is unknown', { heldSinceMs: null }],
    ['a device at work', { busyHistory: history(90) }],
    ['one busy reading', { busyHistory: [...history(1), { atMs: NOW, busyPercent: 40 }] }],
    ['a device of unknown use', { busyHistory: history(null) }],
    ['one unknown reading', { busyHistory: [...history(1), { atMs: NOW, busyPercent: null }] }],
    ['too few readings', { busyHistory: history(1, 4) }],
    [
      'old readings',
      { busyHistory: history(1).map((reading) => ({ ...reading, atMs: reading.atMs - 90_000 })) },
    ],
    [
      'readings of a moment',
      { busyHistory: history(1).map((reading, index) => ({ ...reading, atMs: NOW - index })) },
    ],
  ])('is not so for %s', (_, over) => {
    expect(stuck(over)).toBeNull();
  });

  it('is told once a holder', () => {
    expect(stuck()?.key).toBe(stuck({ nowMs: NOW + 1, busyHistory: history(2) })?.key);
    const [holder] = LANE.holders;
    if (holder === undefined) throw new Error('no holder');
    expect(stuck({ lane: { ...LANE, holders: [{ ...holder, turn: 'u' }] } })?.key).not.toBe(stuck()?.key);
  });
});

describe('a lane that is bypassed', () => {
  const readings = (count: number, over: object = {}) =>
    Array.from({ length: count }, (_, index) => ({
      atMs: index * 1000,
      backendBusy: true,
      laneHeld: false,
      ...over,
    }));

  it('is free while its backend generates, for longer than two moments of looking differ', () => {
    const found = laneBypassed('router', readings(5), [{ pid: 99, command: 'curl' }]);
    expect(found).toMatchObject({ numbers: { forMs: 4000, clients: 1, pid: 99 } });
    expect(found?.reason).toBe(
      'router is at work while its lane is free: it is used outside the lane by pid 99 (curl).',
    );
    expect(laneBypassed('router', readings(5), [])?.reason).toContain('could not be found');
  });

  it('is not so for a moment, for a held lane, or for what is not known', () => {
    expect(laneBypassed('router', readings(3), [])).toBeNull();
    expect(laneBypassed('router', [], [])).toBeNull();
    expect(laneBypassed('router', readings(9, { laneHeld: true }), [])).toBeNull();
    expect(laneBypassed('router', readings(9, { laneHeld: null }), [])).toBeNull();
    expect(laneBypassed('router', readings(9, { backendBusy: null }), [])).toBeNull();
    const broken = readings(9).map((reading, index) =>
      index === 6 ? { ...reading, backendBusy: false } : reading,
    );
    expect(laneBypassed('router', broken, [])).toBeNull();
  });

  it('is one finding while it goes on', () => {
    expect(laneBypassed('router', readings(5), [])?.key).toBe(laneBypassed('router', readings(9), [])?.key);
  });
});

describe('who talks to a backend', () => {
  it('is read from the tables of connections', () => {
    const line = (remote: string, state: string, inode: string): string =>
      `   0: 0100007F:D431 ${remote} ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0 20 4 30 10 -1`;
    const text = [
      '  sl  local_address rem_address',
      line('0100007F:1F90', '01', '501'),
      line('0100007F:1F90', '06', '0'),
      line('0100007F:1F91', '01', '502'),
    ].join('\n');
    expect(establishedIn(text)).toEqual([
      { port: 54321, peerPort: 8080, inode: '501' },
      { port: 54321, peerPort: 8081, inode: '502' },
    ]);
  });

  it('finds the very process', async () => {
    const server = createServer();
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const script = `import socket,sys;s=socket.create_connection(("127.0.0.1",${address.port}));print("on",flush=True);sys.stdin.read()`;
    await using client = startOther(['python3', '-c', script]);
    await client.line();
    expect(localClients(address.port)).toMatchObject([
      { pid: client.pid, command: expect.stringContaining('python3') },
    ]);
    expect(localClients(address.port, new Set([client.pid]))).toEqual([]);
    const { remotePort } = await accepted;
    expect(peersOf([{ port: address.port, peerPort: remotePort ?? 0 }])).toEqual([client.pid]);
    expect(peersOf([{ port: address.port, peerPort: 1 }])).toEqual([null]);
    (await accepted).destroy();
    server.close();
  });
});
