import { execFile } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fail } from '../../shared/errors.ts';
import {
  LAUNCHER,
  landlord,
  startLandlord,
  startTestRuntime,
  type TestRuntime,
} from '../support/landlord.ts';

/** `landlord reserve`, the real program, against a real server over a fake runtime. */
const GB = 1_000_000_000;

let test: TestRuntime;

beforeEach(async () => {
  test = await startTestRuntime();
});

afterEach(async () => {
  await test.dispose();
});

const reserve = (...args: readonly string[]): readonly string[] => [
  'reserve',
  '--state-dir',
  test.stateDir,
  ...args,
];

describe('landlord reserve', () => {
  it('books before it starts the command, ends with its exit code, and gives back', async () => {
    const running = startLandlord(
      reserve(
        '--bytes',
        '9GB',
        '--device',
        'sim:0',
        '--name',
        'sdxl',
        '--',
        'sh',
        '-c',
        'echo on; sleep 0.5; exit 7',
      ),
    );
    await expect.poll(() => running.out(), { timeout: 10_000 }).toBe('on\n');
    expect(test.runtime.reservations()).toMatchObject([
      { name: 'sdxl', bytes: 9 * GB, deviceId: 'sim:0', pids: [running.child.pid] },
    ]);
    expect(await running.ended).toEqual({ code: 7, out: 'on\n', err: '' });
    await expect.poll(() => test.runtime.reservations()).toEqual([]);
  });

  it('is called after its command where no name is given', async () => {
    expect((await landlord(reserve('--bytes', '512MiB', '--', '/bin/true'))).code).toBe(0);
    expect(test.runtime.reserveRequests).toMatchObject([{ name: 'true', bytes: 2 ** 29, device: null }]);
  });

  it('denied: exit code 75, the sentence on stderr, and the command never starts', async () => {
    test.runtime.refuseReserve = async () =>
      fail('vram_denied', 'sdxl needs 9.0 GB; 4.0 GB is free.', { freeBytes: 4 * GB }).error;
    const ran = await landlord(reserve('--bytes', '9GB', '--', 'echo', 'started'));
    expect(ran).toEqual({ code: 75, out: '', err: 'landlord reserve: sdxl needs 9.0 GB; 4.0 GB is free.\n' });
  });

  it('any other refusal is no denial: exit code 69', async () => {
    test.runtime.refuseReserve = async () => fail('unknown_device', 'There is no device x.').error;
    const ran = await landlord(reserve('--bytes', '9GB', '--device', 'x', '--', 'echo', 'started'));
    expect(ran).toEqual({ code: 69, out: '', err: 'landlord reserve: There is no device x.\n' });
  });

  it('a command that is not there: 127, or 126 where it may not be run, and nothing is asked for', async () => {
    expect((await landlord(reserve('--bytes', '9GB', '--', 'no-such-command-here'))).code).toBe(127);
    const file = join(test.stateDir, 'plain.txt');
    await writeFile(file, 'text');
    await chmod(file, 0o644);
    expect((await landlord(reserve('--bytes', '9GB', '--', file))).code).toBe(126);
    expect(test.runtime.reserveRequests).toEqual([]);
  });

  it('no runtime: exit code 3, and the command never starts', async () => {
    await test.stopServer();
    const ran = await landlord(reserve('--bytes', '9GB', '--', 'echo', 'started'));
    expect([ran.code, ran.out]).toEqual([3, '']);
    expect(ran.err).toMatch(/^landlord reserve: /);
  });

  it.each([
    [['--', 'true'], '--bytes is missing'],
    [['--bytes', '9G', '--', 'true'], 'write 9GB'],
    [['--bytes', '0GB', '--', 'true'], 'more than 0'],
    [['--bytes', '9GB', 'true'], 'write it after --'],
    [['--bytes', '9GB', '--'], 'missing'],
  ])('usage: %j is 64', async (args: readonly string[], told) => {
    const ran = await landlord(reserve(...args));
    expect(ran.code).toBe(64);
    expect(ran.err).toContain(told);
  });

  it('passes signals on, and ends as the command does: 128 + n', async () => {
    const script = 'trap "echo told; exit 5" TERM; echo on; while :; do sleep 0.05; done';
    const told = startLandlord(reserve('--bytes', '9GB', '--', 'sh', '-c', script));
    await expect.poll(() => told.out(), { timeout: 10_000 }).toBe('on\n');
    told.child.kill('SIGTERM');
    expect(await told.ended).toMatchObject({ code: 5, out: 'on\ntold\n' });
    const ended = startLandlord(reserve('--bytes', '9GB', '--', 'sh', '-c', 'echo on; exec sleep 60'));
    await expect.poll(() => ended.out(), { timeout: 10_000 }).toBe('on\n');
    ended.child.kill('SIGTERM');
    expect((await ended.ended).code).toBe(128 + 15);
    await expect.poll(() => test.runtime.reservations()).toEqual([]);
  });

  it.each([
    ['the terminal tells the command itself', '', 'told 1'],
    // Where the terminal tells it nothing, whatever it hears is ours.
    ['and we tell it nothing more', 'os.setpgid(0, 0)', 'told 0'],
  ])('leaves Ctrl-C to the terminal: %s', async (_what, begin, told) => {
    const command = [
      'import os, signal, time',
      begin,
      'told = []',
      'signal.signal(signal.SIGINT, lambda *_: told.append(1))',
      'print("on", flush=True)',
      'time.sleep(1)',
      'print("told", len(told))',
    ].join('\n');
    // A terminal of its own, in which somebody presses Ctrl-C once the command is there.
    const terminal = [
      'import os, pty, sys',
      'pid, fd = pty.fork()',
      'if pid == 0: os.execv(sys.argv[1], sys.argv[1:])',
      'text, pressed = b"", False',
      'while True:',
      '  try: part = os.read(fd, 1000)',
      '  except OSError: break',
      '  if not part: break',
      '  text += part',
      '  if b"on" in text and not pressed: pressed = os.write(fd, b"\\x03") == 1',
      'sys.stdout.write(text.decode())',
      'sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))',
    ].join('\n');
    const args = reserve('--bytes', '9GB', '--', 'python3', '-c', command);
    const { stdout } = await promisify(execFile)('python3', ['-c', terminal, LAUNCHER, ...args]);
    expect(stdout.trim().endsWith(told)).toBe(true);
  });

  it('killed outright, it gives back: the kernel closes its connection', async () => {
    const running = startLandlord(reserve('--bytes', '9GB', '--', 'sh', '-c', 'echo $$; exec sleep 60'));
    await expect.poll(() => running.out(), { timeout: 10_000 }).toMatch(/^\d+\n$/);
    const command = Number(running.out());
    expect(test.runtime.reservations()).toHaveLength(1);
    running.child.kill('SIGKILL');
    await expect.poll(() => test.runtime.reservations(), { timeout: 1_000 }).toEqual([]);
    process.kill(command, 'SIGKILL');
  });

  it('whose booking somebody ends: says so, and the command goes on to its own end', async () => {
    const go = join(test.stateDir, 'go');
    const script = `echo on; while [ ! -e ${go} ]; do sleep 0.05; done; exit 6`;
    const running = startLandlord(reserve('--bytes', '9GB', '--', 'sh', '-c', script));
    await expect.poll(() => running.out(), { timeout: 10_000 }).toBe('on\n');
    test.runtime.endAs('job-1', 'ended');
    await expect
      .poll(() => running.err(), { timeout: 10_000 })
      .toBe(
        'landlord reserve: The booking is over: Somebody else ended it. The command goes on without it.\n',
      );
    await writeFile(go, '');
    expect((await running.ended).code).toBe(6);
  });
});
