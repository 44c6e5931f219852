import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { procfs } from '../../../electron/core/process/procfs.ts';
import {
  environValue,
  flagValue,
  parseCmdline,
  parseListening,
  parsePss,
  parseStat,
  parseStatmResident,
  parseUid,
  socketInode,
} from '../../../electron/core/process/procfs-text.ts';

const stat = (pid: number, comm: string, parent: number, start: number): string =>
  `${pid} (${comm}) S ${parent} 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 ${start} 99999 12 18446744073709551615 1 1 0\n`;

describe('/proc texts', () => {
  it.each(['a b', 'x) S 9', '((', 'tmux: server', ')'])('a name may be %j', (comm) => {
    expect(parseStat(stat(42, comm, 7, 31415))).toEqual({
      pid: 42,
      comm,
      state: 'S',
      parentPid: 7,
      cpuTicks: 300,
      startTimeTicks: 31415,
    });
  });

  it('a stat line cut anywhere is nothing, not a wrong start time', () => {
    const line = stat(42, 'x', 7, 31415);
    const whole = line.indexOf(' 31415') + 6;
    for (let end = 0; end < whole - 5; end += 1) expect(parseStat(line.slice(0, end))).toBeNull();
    expect(parseStat(line.slice(0, whole))?.startTimeTicks).toBe(31415);
  });

  it('argv keeps empty arguments and spaces', () => {
    expect(parseCmdline('llama-server\0--alias\0\0two words\0')).toEqual([
      'llama-server',
      '--alias',
      '',
      'two words',
    ]);
    expect(parseCmdline('')).toEqual([]);
  });

  it('takes the effective user, one variable, resident and proportional bytes', () => {
    expect(parseUid('Name:\tx\nUid:\t1000\t1001\t1000\t1000\n')).toBe(1001);
    expect(environValue('A=1\0LLAMA_SERVER_ROUTER_PORT=8080\0', 'LLAMA_SERVER_ROUTER_PORT')).toBe('8080');
    expect(environValue('XA=1\0', 'A')).toBeNull();
    expect(parseStatmResident('900 30 5 1 0 40 0\n', 16384)).toBe(30 * 16384);
    expect(parsePss('Rss: 9 kB\nPss:  7 kB\nPss_Anon: 5 kB\n')).toBe(7168);
  });

  it('a listening socket is one in state 0A, of either address family', () => {
    const text = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 5551 1 0 100 0 0 10 0',
      '   1: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 5552 1 0 20 4 30 10 -1',
      '   2: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 5553 1 0 100 0 0 10 0',
    ].join('\n');
    expect(parseListening(text)).toEqual([
      { port: 8080, inode: '5551' },
      { port: 8082, inode: '5553' },
    ]);
    expect([socketInode('socket:[5551]'), socketInode('pipe:[5551]')]).toEqual(['5551', null]);
  });

  it('a flag may be written with a space or an equals sign', () => {
    expect(flagValue(['x', '--port', '80'], '--port')).toBe('80');
    expect(flagValue(['x', '--port=81'], '--port')).toBe('81');
    expect(flagValue(['x', '--ports', '80'], '--port')).toBeNull();
    expect(flagValue(['x', '--port'], '--port')).toBeNull();
  });
});

describe('a /proc of plain files', () => {
  let root = '';
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'proc-'));
    put('net/tcp', '   0: 0100007F:22B8 00000000:0000 0A 0:0 00:0 0 1000 0 777 1\n');
    put('100/stat', stat(100, 'router', 1, 500));
    put('100/cmdline', 'llama-server\0--models-dir\0/m\0');
    put('1/stat', stat(1, 'init', 0, 1));
    put('101/stat', stat(101, 'child', 100, 600));
    put('101/cmdline', 'llama-server\0--port\x008888\0--alias\0m\0');
    put('101/environ', 'LLAMA_SERVER_ROUTER_PORT=8080\0');
    put('101/status', 'Uid:\t7\t8\t7\t7\n');
    put('101/net/tcp', '   0: 0100007F:22B8 00000000:0000 0A 0:0 00:0 0 1000 0 777 1\n');
    mkdirSync(join(root, '101/fd'));
    symlinkSync('socket:[777]', join(root, '101/fd/3'));
    put('102/stat', stat(102, 'other', 1, 700));
    put('102/cmdline', 'python\0serve.py\0');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('gives the facts an identity is proven by', () => {
    expect(procfs(root, 4096).facts([101, 999])).toEqual([
      {
        pid: 101,
        startTimeTicks: 600,
        parentPid: 100,
        parentStartTimeTicks: 500,
        uid: 8,
        command: ['llama-server', '--port', '8888', '--alias', 'm'],
        listeningPorts: [8888],
        routerPort: 8080,
        cpuMs: 3000,
        state: 'S',
      },
    ]);
  });

  it('tells servers whose starter is gone, and that no service keeps, from others', () => {
    const alone = () =>
      procfs(root, 4096)
        .servers()
        .map(({ pid, isAlone }) => [pid, isAlone]);
    put('100/cgroup', '0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope\n');
    expect(alone()).toEqual([
      [100, true],
      [101, false],
    ]);
    put('100/cgroup', '0::/system.slice/llama.service\n');
    expect(alone()).toContainEqual([100, false]);
    // Taken in by the session's own manager, as what an app leaves behind is.
    put('50/stat', stat(50, 'systemd', 1, 2));
    put('100/stat', stat(100, 'router', 50, 500));
    put('100/cgroup', '0::/user.slice/user-1000.slice/session-2.scope\n');
    expect(alone()).toContainEqual([100, true]);
    put('50/stat', stat(50, 'bash', 1, 2));
    expect(alone()).toContainEqual([100, false]);
  });

  it('tells what of its environment changes a model’s size, and nothing else of it', () => {
    put('101/environ', 'LLAMA_API_KEY=secret\0LLAMA_ARG_CTX_SIZE=8192\0HOME=/root\0');
    expect(procfs(root, 4096).facts([101])[0]?.variables).toEqual([['LLAMA_ARG_CTX_SIZE', '8192']]);
    put('101/environ', 'LLAMA_API_KEY=secret\0');
    expect(procfs(root, 4096).facts([101])[0]).not.toHaveProperty('variables');
  });

  it('what can’t be read is unknown, not empty', () => {
    expect(procfs(root, 4096).facts([102])).toMatchObject([
      { uid: null, listeningPorts: null, routerPort: null },
    ]);
  });

  it('reads the sockets once for all processes that share a network, and a container’s own for it', () => {
    const inNetwork = (pid: number, network: string): void => {
      put(`${pid}/stat`, stat(pid, 'child', 100, 600));
      mkdirSync(join(root, `${pid}/ns`), { recursive: true });
      mkdirSync(join(root, `${pid}/fd`), { recursive: true });
      symlinkSync(network, join(root, `${pid}/ns/net`));
      if (pid !== 101) symlinkSync('socket:[777]', join(root, `${pid}/fd/3`));
    };
    inNetwork(101, 'net:[1]');
    inNetwork(103, 'net:[1]');
    inNetwork(104, 'net:[2]');
    put('104/net/tcp', '   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 1000 0 777 1\n');
    // 103 has no table of its own here: what it is told is the one read for 101.
    const ports = procfs(root, 4096)
      .facts([101, 103, 104])
      .map(({ listeningPorts }) => listeningPorts);
    expect(ports).toEqual([[8888], [8888], [8080]]);
  });

  it('finds by command line and by listening socket', () => {
    const find = (port: number): readonly number[] =>
      procfs(root, 4096)
        .find({ port, alias: null, routerPort: null })
        .map(({ pid }) => pid);
    expect(find(8888)).toEqual([101]);
    put('102/fd/x', '');
    put('net/tcp6', '   0: 00000000000000000000000001000000:22B9 0:0000 0A 0:0 00:0 0 1000 0 778 1\n');
    put(
      'net/tcp6',
      '   0: 00000000000000000000000001000000:22B9 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 778 1\n',
    );
    symlinkSync('socket:[778]', join(root, '102/fd/4'));
    expect(find(8889)).toEqual([102]);
    expect(find(8890)).toEqual([]);
  });
});

describe('the machine’s own /proc', () => {
  it('knows this process, its parent and the port it listens on', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const [facts] = procfs().facts([process.pid]);
      expect(facts).toMatchObject({ pid: process.pid, parentPid: process.ppid, uid: process.geteuid?.() });
      expect(facts?.listeningPorts).toContain(port);
      expect(
        procfs()
          .find({ port, alias: null, routerPort: null })
          .map(({ pid }) => pid),
      ).toEqual([process.pid]);
      expect(procfs().residentBytes(process.pid)).toBeGreaterThan(10_000_000);
    } finally {
      server.close();
    }
  });
});
