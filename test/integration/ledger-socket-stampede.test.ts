import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLedgerSocket } from '../../electron/core/engine/socket/ledger-socket.ts';
import { DEVICE, type DeskBench, deskBench, MB } from '../support/desk-bench.ts';
import { eventually, SocketClient } from '../support/socket-client.ts';

const CLIENTS = 64;
const ROOM_FOR = 10;
const ROUNDS = 1_000;
const KILL_ROUNDS = 15;
/** Ten files' weights and the context of one. */
const CAP = { capBytes: ROOM_FOR * 100 * MB + 50 * MB };

/** Registers an agent of its own over each of eight connections, all at once, and waits to be killed. */
const KILLED_CLIENT = `
import socket, sys, time
path, first = sys.argv[1], int(sys.argv[2])
sockets = []
for n in range(first, first + 8):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    sockets.append((n, s))
for n, s in sockets:
    s.sendall(b"REGISTER a%d\\t/models/%d.gguf\\tbind\\n" % (n, n))
for n, s in sockets:
    print(s.recv(4096).decode().split(" ")[0], flush=True)
time.sleep(60)
`;

async function served(): Promise<{
  readonly bench: DeskBench;
  readonly path: string;
  stop(): Promise<void>;
}> {
  const bench = await deskBench(CAP);
  const path = join(bench.folder, 'landlord.sock');
  const socket = await openLedgerSocket({ path, desk: bench.desk, limits: { probeMs: 50 } });
  if (!socket.ok) throw new Error(socket.error.message);
  return {
    bench,
    path,
    async stop() {
      await socket.value.stop();
      await bench[Symbol.asyncDispose]();
    },
  };
}

function expectRight(bench: DeskBench): void {
  expect(bench.wrong()).toEqual([]);
  const booked = bench.ledger.book(DEVICE)?.bookedBytes ?? -1;
  expect(booked).toBeLessThanOrEqual(CAP.capBytes);
  expect(booked).toBe(bench.desk.list().reduce((sum, agent) => sum + agent.bookedBytes, 0));
}

it(`admits exactly ${ROOM_FOR} of ${CLIENTS} clients that ask at once, in each of ${ROUNDS} rounds`, async () => {
  const { bench, path, stop } = await served();
  const clients = Array.from({ length: CLIENTS }, () => new SocketClient(path));
  for (let round = 0; round < ROUNDS; round += 1) {
    const answers = await Promise.all(
      clients.map((client, index) =>
        client.ask(`REGISTER a${index}\t/models/${(index * 7 + round) % CLIENTS}.gguf`),
      ),
    );
    const admitted = answers.flatMap((answer, index) => (answer?.startsWith('OK ') ? [index] : []));
    expect(admitted).toHaveLength(ROOM_FOR);
    expect(answers.filter((answer) => answer?.startsWith('ERR VRAM_LEDGER_DENY code=CAP '))).toHaveLength(
      CLIENTS - ROOM_FOR,
    );
    expectRight(bench);
    await Promise.all(admitted.map((index) => clients[index]?.ask(`UNREGISTER a${index}`)));
    expect(bench.ledger.bookings()).toEqual([]);
    bench.events.length = 0;
  }
  for (const client of clients) client[Symbol.dispose]();
  await stop();
});

it('keeps the book right when clients are killed at any moment', async () => {
  const { bench, path, stop } = await served();
  const start = (first: number): ChildProcess =>
    spawn('python3', ['-c', KILLED_CLIENT, path, String(first)], { stdio: ['ignore', 'pipe', 'ignore'] });
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const children = Array.from({ length: 3 }, (_, index) => start(index * 8));
    const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    // One before it connects or while it asks, one with its first answer, the last when all is quiet.
    const [first, second, third] = children;
    setTimeout(() => first?.kill('SIGKILL'), round * 2);
    second?.stdout?.once('data', () => second.kill('SIGKILL'));
    await new Promise((resolve) => third?.stdout?.once('data', resolve));
    // Loads are under way: they are booked, and their agents not listed yet.
    expect(bench.wrong()).toEqual([]);
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBeLessThanOrEqual(CAP.capBytes);
    await Promise.all(ended.slice(0, 2));
    third?.kill('SIGKILL');
    await ended[2];
    await eventually(() => bench.ledger.bookings().length === 0, 'the book to be empty');
    expectRight(bench);
    expect(bench.desk.list()).toEqual([]);
    expect(bench.engine.loadedModels).toBe(0);
  }
  await stop();
});
