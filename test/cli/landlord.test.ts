import { execFile, spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { version } from '../../electron/core/version.ts';
import { fail, ok } from '../../shared/errors.ts';
import { sampleModel } from '../support/fake-runtime.ts';
import {
  LAUNCHER,
  landlord,
  startLandlord,
  startTestRuntime,
  type TestRuntime,
} from '../support/landlord.ts';

let test: TestRuntime;
let empty: string;
const here = (...args: readonly string[]): readonly string[] => [...args, '--state-dir', test.stateDir];

beforeAll(async () => {
  test = await startTestRuntime();
  empty = await mkdtemp(join(tmpdir(), 'landlord-empty-'));
});

beforeEach(() => {
  test.runtime.commands.length = 0;
  test.runtime.answer = (command) => ok({ message: `Did ${command.type}.` });
});

afterAll(async () => {
  await test.dispose();
  await rm(empty, { recursive: true });
});

async function waitFor(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe('the command line', () => {
  it.each([
    [[], /^Usage: landlord COMMAND/m],
    [['explode'], /there is no command explode\./],
    [['statsu'], /Did you mean status\?/],
    [['status', '--colour'], /^Usage: landlord status/m],
    [['load'], /^Usage: landlord load MODEL/m],
    [['load', 'a', 'b'], /b is one argument too many/],
    [['load', ''], /An argument is empty/],
    [['guards', 'off'], /^Usage: landlord guards on\|observe\|pause/m],
    [['guards', 'on', '--for', '1h'], /--for goes with pause/],
    [['sleep', '--for', '2 weeks'], /--for 2 weeks is not a duration/],
    [['sleep', '--for', '0'], /longer than 0/],
    [['make-room', '8'], /8 is not an amount of memory/],
    [['make-room', '8G'], /8GB \(decimal\)/],
    [['events', '--limit', '0'], /--limit takes a whole number/],
    [['status', '--port', '99999'], /--port takes a whole number/],
  ])('%j is a usage error: 64, on stderr, and nothing is asked of the runtime', async (args, message) => {
    const ran = await landlord(args);
    expect(ran.code).toBe(64);
    expect(ran.out).toBe('');
    expect(ran.err).toMatch(message);
    expect(ran.err).toContain('Usage: landlord');
    expect(test.runtime.commands).toEqual([]);
  });

  it('says what sets a checkout up that has no packages yet, also where Node is new enough', async () => {
    const checkout = join(empty, 'checkout');
    await mkdir(join(checkout, 'build'), { recursive: true });
    await copyFile(LAUNCHER, join(checkout, 'build', 'landlord'));
    await writeFile(join(checkout, 'package-lock.json'), '{}');
    const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
    const { status, stderr } = spawnSync(join(checkout, 'build', 'landlord'), ['demo'], {
      env,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([
      69,
      `landlord: its packages are not here yet: run \`npm start\` in ${checkout} once, which sets it up.\n`,
    ]);
  });

  it('tells how it is meant, for each command, on stdout', async () => {
    const list = await landlord(['--help']);
    expect([list.code, list.err]).toEqual([0, '']);
    for (const name of ['serve', 'status', 'make-room', 'guards', 'demo'])
      expect(list.out).toContain(`  ${name} `);
    const one = await landlord(['make-room', '--help']);
    expect([one.code, one.err]).toEqual([0, '']);
    expect(one.out).toContain('Usage: landlord make-room SIZE');
    expect((await landlord(['help', 'make-room'])).out).toBe(one.out);
  });

  it('tells its version', async () => {
    expect(await landlord(['--version'])).toEqual({ code: 0, out: `${version()}\n`, err: '' });
  });

  it.each([['status'], ['events'], ['models'], ['open'], ['drain'], ['load', 'm']])(
    '%s with no runtime says so and exits 3',
    async (...args) => {
      const ran = await landlord([...args, '--state-dir', empty]);
      expect(ran.code).toBe(3);
      expect(ran.out).toBe('');
      expect(ran.err).toContain('landlord serve');
    },
  );
});

describe('the launcher', () => {
  it('is found through a chain of relative links', async () => {
    const bin = join(empty, 'bin');
    await mkdir(bin);
    await symlink(LAUNCHER, join(empty, 'direct'));
    await symlink('../direct', join(bin, 'landlord'));
    const ran = spawnSync(join(bin, 'landlord'), ['--version'], { encoding: 'utf8', cwd: '/' });
    expect([ran.status, ran.stdout]).toEqual([0, `${version()}\n`]);
  });
});

describe('status', () => {
  it('--json is the state, exactly', async () => {
    const ran = await landlord(here('status', '--json'));
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.out)).toEqual(test.runtime.state());
  });

  it('says how much is booked and not taken yet, where there is any', async () => {
    expect((await landlord(here('status'))).out).not.toContain('not taken yet');
    const { devices } = test.runtime.state();
    test.runtime.publish({ devices: devices.map((one) => ({ ...one, outstandingBytes: 9e9 })) });
    expect((await landlord(here('status'))).out).toContain('9.0 GB booked and not taken yet');
  });

  it('shows what memory there is, who holds it and why a model left', async () => {
    const ran = await landlord(here('status'), { LANG: 'C.UTF-8' });
    expect(ran.code).toBe(0);
    expect(ran.out).toContain('15.0 GB of 24.0 GB used, 9.0 GB free');
    expect(ran.out).toContain('floor 3.0 GB · cap 21.6 GB, 12.0 GB of it booked');
    expect(ran.out).toMatch(/3\.0 GB {2}desktop {2}Desktop +firefox 1\.2 GB/);
    expect(ran.out).toMatch(/router\/coder-9b +loaded, busy +12\.0 GB {2}big/);
    expect(ran.out).toMatch(
      /router\/vision-27b +unloaded +~19\.0 GB .*left .* ago: Free memory was 0\.9 GB under/,
    );
    expect(ran.out).toMatch(/\[█+▓+░+╌+\]/);
  });

  it('colours nothing where nobody looks, and needs no UTF-8', async () => {
    const ran = await landlord(here('status'), { LANG: 'C', FORCE_COLOR: '1' });
    expect(ran.out).not.toContain('\u001b');
    expect(ran.out).toMatch(/\[#+=+\.+-+\]/);
  });

  it('prints no escape sequence of a name', async () => {
    const models = test.runtime.state().models;
    const evil = sampleModel({ id: 'router/\u001b[2Jevil\u202e\u009b' });
    test.runtime.publish({ models: [evil] });
    const ran = await landlord(here('models'));
    test.runtime.publish({ models });
    expect(ran.out).toContain('router/\\u{1b}[2Jevil\\u{202e}\\u{9b}');
    for (const character of ['\u001b', '\u202e', '\u009b']) expect(ran.out).not.toContain(character);
  });

  it('models --json is the models of the state', async () => {
    const ran = await landlord(here('models', '--json'));
    expect(JSON.parse(ran.out)).toEqual(test.runtime.state().models);
  });

  it('finds a runtime by its port', async () => {
    const ran = await landlord(here('status', '--json', '--port', String(test.server.port)));
    expect(ran.code).toBe(0);
    const nobody = await landlord(here('status', '--port', '1'));
    expect([nobody.code, nobody.out]).toEqual([3, '']);
  });
});

describe('commands', () => {
  it.each([
    [['load', 'router/coder-9b', '--force'], { type: 'load', model: 'router/coder-9b', force: true }],
    [['unload', 'coder-9b'], { type: 'unload', model: 'router/coder-9b', force: false }],
    [['pin', 'vision-27b'], { type: 'pin', model: 'router/vision-27b' }],
    [['unpin', 'ollama/bge'], { type: 'unpin', model: 'ollama/bge' }],
    [['sleep', '--for', '2h'], { type: 'sleep', forMs: 7_200_000 }],
    [['sleep'], { type: 'sleep', forMs: null }],
    [['wake'], { type: 'wake' }],
    [['drain'], { type: 'drain' }],
    [['drain', '--kill', '--restart-unit'], { type: 'drain', kill: true, restartUnit: true }],
    [['accept', 'drain-kill'], { type: 'accept', offer: 'drain-kill' }],
    [['restore'], { type: 'restore' }],
    [['make-room', '8GB'], { type: 'makeRoom', freeBytes: 8_000_000_000, deviceId: null }],
    [['guards', 'on'], { type: 'guards', mode: 'on', forMs: null, backend: null }],
    [
      ['guards', 'pause', '--for', '15min', '--backend', 'router'],
      { type: 'guards', mode: 'pause', forMs: 900_000, backend: 'router' },
    ],
  ])('%j asks for just that and tells what was done', async (args, command) => {
    const ran = await landlord(here(...args));
    expect(ran).toEqual({ code: 0, out: `Did ${command.type}.\n`, err: '' });
    expect(test.runtime.commands).toEqual([command]);
  });

  it('a name that two backends have is asked back with the candidates', async () => {
    const ran = await landlord(here('load', 'bge'));
    expect(ran.code).toBe(69);
    expect(ran.err).toContain('router/bge, ollama/bge');
    expect(test.runtime.commands).toEqual([]);
  });

  it('a name that nobody has is told with the nearest', async () => {
    const ran = await landlord(here('load', 'coder-9c'));
    expect([ran.code, ran.err]).toEqual([
      69,
      'landlord load: There is no model coder-9c. Did you mean coder-9b?\n',
    ]);
  });

  it('a refusal is 69 with the runtime’s own sentence on stderr', async () => {
    test.runtime.answer = () =>
      fail('vram_denied', 'It needs 19.0 GB and 9.0 GB are free.', { freeBytes: 9e9 });
    const ran = await landlord(here('load', 'vision-27b'));
    expect(ran).toEqual({ code: 69, out: '', err: 'landlord load: It needs 19.0 GB and 9.0 GB are free.\n' });
  });

  it('a token of another runtime is told as such', async () => {
    const other = await startTestRuntime();
    await writeFile(join(other.stateDir, 'token'), `${'x'.repeat(43)}\n`);
    const ran = await landlord(['status', '--state-dir', other.stateDir]);
    await other.dispose();
    expect(ran.code).toBe(69);
    expect(ran.err).toContain('--state-dir');
  });

  it('open prints an address that lets a browser in', async () => {
    const ran = await landlord(here('open'));
    expect(ran.code).toBe(0);
    const answer = await fetch(ran.out.trim(), { redirect: 'manual' });
    expect([answer.status, answer.headers.has('set-cookie')]).toEqual([303, true]);
  });

  it('a wait is ended by a signal with 128 and its number', async () => {
    test.runtime.answer = () => new Promise(() => undefined);
    const running = startLandlord(here('load', 'coder-9b'));
    await waitFor(() => test.runtime.commands.length === 1);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
  });
});

describe('events', () => {
  it('are one JSON a line, oldest first, or a line for a person', async () => {
    const first = test.runtime.append({
      kind: 'evicted',
      model: 'router/vision-27b',
      reason: 'It had to go.',
    });
    const second = test.runtime.append({ kind: 'denied', reason: 'No room\nfor it.' });
    const json = await landlord(here('events', '--json', '--limit', '2'));
    expect(
      json.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([first, second]);
    const human = await landlord(here('events', '--limit', '2'));
    expect(human.out.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^2026-03-04 09:00:\d\d {2}evicted +router\/vision-27b: It had to go\.$/),
      expect.stringMatching(/denied +No room\\u\{a\}for it\.$/),
    ]);
  });

  it('--follow goes on across a restart of the runtime, and misses and repeats nothing', async () => {
    const before = test.runtime.append({ reason: 'before' });
    const running = startLandlord(here('events', '--follow', '--json', '--limit', '1'));
    await waitFor(() => running.out().includes('before'));
    await waitFor(() => test.runtime.eventListeners() === 2);
    test.runtime.append({ reason: 'live' });
    await waitFor(() => running.out().includes('live'));
    await test.stopServer();
    test.runtime.append({ reason: 'while away' });
    await waitFor(() => running.err().includes('went away'));
    await test.restart();
    await waitFor(() => running.out().includes('while away'));
    test.runtime.append({ reason: 'after' });
    await waitFor(() => running.out().includes('after'));
    running.child.kill('SIGTERM');
    const ended = await running.ended;
    expect(ended.code).toBe(143);
    const ids = ended.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id);
    expect(ids).toEqual([before.id, before.id + 1, before.id + 2, before.id + 3]);
  });

  it('are quiet when their reader has seen enough', async () => {
    for (let count = 0; count < 3000; count += 1) test.runtime.append({ reason: 'x'.repeat(100) });
    const script = `"${LAUNCHER}" events --limit 3000 --state-dir "${test.stateDir}" | head -n 1`;
    const ran = await new Promise<{ out: string; err: string }>((resolve) => {
      execFile('sh', ['-c', script], (_error, out, err) => resolve({ out, err }));
    });
    expect(ran.err).toBe('');
    expect(ran.out.split('\n')).toHaveLength(2);
  });
});
