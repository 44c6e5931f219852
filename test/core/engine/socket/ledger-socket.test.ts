import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type LedgerSocket,
  openLedgerSocket,
  type SocketLimits,
} from '../../../../electron/core/engine/socket/ledger-socket.ts';
import { DEVICE, type DeskBench, type DeskBenchOptions, deskBench, MB } from '../../../support/desk-bench.ts';
import { eventually, SocketClient } from '../../../support/socket-client.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
});

async function served(
  options: Partial<DeskBenchOptions> = {},
  limits: Partial<SocketLimits> = {},
): Promise<{ readonly bench: DeskBench; readonly path: string; readonly socket: LedgerSocket }> {
  const bench = await deskBench({ capBytes: 350 * MB, ...options });
  const path = join(bench.folder, 'landlord.sock');
  const socket = await openLedgerSocket({ path, desk: bench.desk, limits });
  if (!socket.ok) throw new Error(socket.error.message);
  open.push({
    async [Symbol.asyncDispose]() {
      await socket.value.stop();
      await bench[Symbol.asyncDispose]();
    },
  });
  return { bench, path, socket: socket.value };
}

/** What a program prints that is given this as its standard input, which then ends. */
function ran(command: string, args: readonly string[], input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.on('error', reject);
    child.on('close', () => resolve(out));
    child.stdin.end(input);
  });
}

const PYTHON = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.stdin.buffer.read())
s.shutdown(socket.SHUT_WR)
while True:
    data = s.recv(65536)
    if not data: break
    sys.stdout.write(data.decode())
`;

/** Everyday clients, where this machine has them. */
const CLIENTS = [
  { name: 'nc -U', program: '/usr/bin/nc.openbsd', args: (path: string) => ['-N', '-U', path] },
  { name: 'python3', program: '/usr/bin/python3', args: (path: string) => ['-c', PYTHON, path] },
].filter(({ program }) => existsSync(program));

const SESSION = [
  'REGISTER smol\t/models/smol.gguf',
  'REGISTER qwen\t/models/qwen 0.5b.gguf',
  'DECODE smol 6 Hello, my name is',
  'DECODE qwen 6 Good day',
  'DECODE smol 6  and',
  'LIST',
  'STATUS',
  'UNREGISTER qwen',
  'LIST',
].join('\n');

function expectSession(out: string): void {
  const lines = out.trimEnd().split('\n');
  const swaps = lines.filter((line) => line.startsWith('OK kv_swap'));
  expect(swaps).toEqual([
    'OK kv_swap_evicted=none kv_swap_restored=false',
    'OK kv_swap_evicted=smol kv_swap_restored=false',
    'OK kv_swap_evicted=qwen kv_swap_restored=true',
  ]);
  expect(lines.filter((line) => line === 'BEGIN_RESPONSE')).toHaveLength(3);
  expect(lines).toContain('OK agent_id=smol model=/models/smol.gguf booked_bytes=150000000 kv=device');
  expect(lines).toContain('OK agent_id=qwen model="/models/qwen 0.5b.gguf" booked_bytes=100000000 kv=host');
  expect(lines).toContain(
    `OK ledger_max_bytes=250000000 ledger_allocated_bytes=250000000 device_free_bytes=${100_000 * MB - 250 * MB} floor_bytes=10000000 agents=2 live_contexts=1`,
  );
  expect(lines.slice(-2)).toEqual([
    'OK agent_id=smol model=/models/smol.gguf booked_bytes=150000000 kv=device',
    'OK end',
  ]);
}

describe('clients of the ledger socket', () => {
  for (const { name, program, args } of CLIENTS)
    it(`is all that ${name} needs, with pipelined lines and its input at an end`, async () => {
      const { path } = await served({ capBytes: 250 * MB });
      expectSession(await ran(program, args(path), `${SESSION}\n`));
    });

  it('answers pipelined lines in order, the last one without its end too', async () => {
    const { path } = await served({ capBytes: 250 * MB });
    using client = new SocketClient(path);
    client.socket.end(SESSION);
    expectSession(await client.rest());
  });

  it('speaks to many at once', async () => {
    const { path } = await served();
    const clients = Array.from({ length: 64 }, () => new SocketClient(path));
    const answers = await Promise.all(clients.map((client) => client.ask('STATUS')));
    expect(new Set(answers)).toEqual(new Set(['OK schema=lmx-daemon/1']));
    for (const client of clients) client[Symbol.dispose]();
  });

  it('says in HELP how an agent is bound', async () => {
    const { path } = await served();
    using client = new SocketClient(path);
    client.socket.end('HELP\n');
    const help = await client.rest();
    for (const word of ['HELP', 'STATUS', 'LIST', 'REGISTER', 'UNREGISTER', 'DECODE', 'bind', 'fit'])
      expect(help).toContain(word);
    expect(
      help
        .trimEnd()
        .split('\n')
        .every((line) => line.startsWith('OK')),
    ).toBe(true);
  });

  it('drops an over-long line with one error and goes on', async () => {
    const { path } = await served({}, { lineBytes: 1000 });
    using client = new SocketClient(path);
    client.send(`DECODE smol 5 ${'x'.repeat(100_000)}\r\nLIST\r\n`);
    expect(await client.lines(2)).toEqual([
      expect.stringMatching(/^ERR bad_input: A line has at most 1000 bytes/),
      'OK end',
    ]);
  });

  it('answers nonsense with one line and goes on', async () => {
    const { path } = await served();
    using client = new SocketClient(path);
    client.send('\n\nFLY\nREGISTER\nDECODE ghost 5 x\nUNREGISTER ghost\nLIST\n');
    const lines = await client.lines(5);
    expect(lines.slice(0, 4).every((line) => line.startsWith('ERR bad_input: '))).toBe(true);
    expect(lines[4]).toBe('OK end');
  });

  it('denies exactly as programs expect it', async () => {
    const { path, bench } = await served({ capBytes: 249 * MB });
    using client = new SocketClient(path);
    await client.ask('REGISTER smol\t/models/smol.gguf');
    expect(await client.ask('REGISTER qwen\t/models/qwen.gguf')).toBe(
      'ERR VRAM_LEDGER_DENY code=CAP ledger_max_bytes=249000000 ledger_allocated_bytes=100000000 requested_table_bytes=150000000',
    );
    bench.ledger.setLimits(DEVICE, {
      totalBytes: 1000 * MB,
      capBytes: 900 * MB,
      floorBytes: 60 * MB,
      hardFloorBytes: 5 * MB,
    });
    bench.free(200 * MB);
    expect(await client.ask('REGISTER qwen\t/models/qwen.gguf')).toBe(
      'ERR VRAM_LEDGER_DENY code=FLOOR ledger_max_bytes=900000000 ledger_allocated_bytes=100000000 requested_table_bytes=150000000 free_bytes=200000000 floor_bytes=60000000',
    );
  });
});

describe('clients that leave, stall or say nothing', () => {
  it('releases what is bound to a connection when it ends, and nothing else', async () => {
    const { path, bench } = await served();
    const client = new SocketClient(path);
    await client.ask('REGISTER free\t/models/free.gguf');
    await client.ask('REGISTER bound\t/models/bound.gguf\tbind');
    expect(bench.desk.list().map(({ agent }) => agent)).toEqual(['free', 'bound']);
    client[Symbol.dispose]();
    await eventually(() => bench.desk.list().length === 1, 'the bound agent to be released');
    expect(bench.desk.list().map(({ agent }) => agent)).toEqual(['free']);
    await eventually(() => bench.ledger.book(DEVICE)?.bookedBytes === 100 * MB, 'its bytes');
  });

  it.each([
    ['before it sends its end', false],
    ['after it has sent its end', true],
  ])('cancels the decode of a client that is killed %s', async (_, halfClosed) => {
    const gate = Promise.withResolvers<void>();
    let tokens = 0;
    const { path, bench } = await served(
      {
        engine: {
          pace: async () => {
            tokens += 1;
            await new Promise((resolve) => setTimeout(resolve, 2));
            if (tokens === 3) gate.resolve();
          },
        },
      },
      { probeMs: 20 },
    );
    const client = new SocketClient(path);
    await client.ask('REGISTER smol\t/models/smol.gguf');
    client.send('DECODE smol 1000000 x\n');
    if (halfClosed) client.socket.end();
    await gate.promise;
    client[Symbol.dispose]();
    const generating = () => bench.desk.states(String)[0]?.state === 'generating';
    await eventually(() => !generating(), 'the decode to be cancelled');
    // Not because its context was full.
    expect(tokens).toBeLessThan(4_000);
  });

  it('reads no further from a client that takes no answers, and leaves it in the end', async () => {
    const { path, bench } = await served({}, { stalledMs: 1_500, waitingLines: 8 });
    await bench.desk.register(
      {
        agent: 'smol',
        path: `/models/${'long'.repeat(2000)}.gguf`,
        holder: null,
        fit: false,
        class: null,
        contextTokens: null,
      },
      new AbortController().signal,
    );
    let asked = 0;
    const list = bench.desk.list.bind(bench.desk);
    bench.desk.list = () => {
      asked += 1;
      return list();
    };
    using client = new SocketClient(path);
    client.socket.pause();
    let taken = 0;
    const send = (): void => {
      if (taken < 80) client.socket.write('LIST\n'.repeat(10_000), (failed) => failed ?? count());
    };
    const count = (): void => {
      taken += 1;
      send();
    };
    send();
    // Writing to a socket whose other side has left is what a client that does not read learns by.
    await eventually(() => {
      client.socket.write('LIST\n');
      return client.socket.destroyed;
    }, 'the client to be left');
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(1_000);
    // Each is 50 kB; the kernel itself keeps a few.
    expect(taken).toBeLessThan(40);
    using other = new SocketClient(path);
    expect(await other.ask('STATUS')).toBe('OK schema=lmx-daemon/1');
  });

  it('takes the place of the longest idle client when all are taken, and refuses where none is idle', async () => {
    const { path } = await served({}, { clients: 2 });
    using first = new SocketClient(path);
    await first.ask('REGISTER one\t/models/one.gguf\tbind');
    using second = new SocketClient(path);
    await second.ask('STATUS');
    using third = new SocketClient(path);
    expect(await third.ask('REGISTER two\t/models/two.gguf\tbind')).toMatch(/^OK agent_id=two/);
    expect(await second.rest()).toContain('ERR closing: ');
    using fourth = new SocketClient(path);
    expect(await fourth.rest()).toMatch(/^ERR busy: /);
  });

  it('leaves a client that asks nothing for too long, but none that holds an agent', async () => {
    const { path } = await served({}, { idleMs: 50 });
    using holder = new SocketClient(path);
    await holder.ask('REGISTER one\t/models/one.gguf\tbind');
    using idle = new SocketClient(path);
    expect(await idle.rest()).toContain('ERR closing: ');
    expect(await holder.ask('LIST')).toMatch(/^OK agent_id=one/);
  });
});

describe('the socket’s file', () => {
  it('is open to its owner alone and gone when the runtime stops', async () => {
    const { path, socket } = await served();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await socket.stop();
    expect(existsSync(path)).toBe(false);
  });

  it('is replaced when its runtime is dead, and left alone when it lives or is no socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'landlord-sock-'));
    const path = join(folder, 's');
    const dead = spawn(
      'python3',
      [
        '-c',
        'import socket,sys,time\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint("up",flush=True)\ntime.sleep(60)',
        path,
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    await new Promise((resolve) => dead.stdout.once('data', resolve));
    const { bench } = await served();
    expect(await openLedgerSocket({ path, desk: bench.desk })).toMatchObject({
      ok: false,
      error: { code: 'already_running' },
    });
    const gone = new Promise((resolve) => dead.once('exit', resolve));
    dead.kill('SIGKILL');
    await gone;
    const socket = await openLedgerSocket({ path, desk: bench.desk });
    expect(socket.ok).toBe(true);
    if (socket.ok) await socket.value.stop();
    await writeFile(path, 'mine');
    expect(await openLedgerSocket({ path, desk: bench.desk })).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
    await rm(folder, { recursive: true });
    const long = join(folder, 'x'.repeat(120));
    const refused = await openLedgerSocket({ path: long, desk: bench.desk });
    expect(refused.ok ? '' : refused.error.message).toContain('--state-dir');
  });
});
