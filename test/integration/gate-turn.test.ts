import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inspectLane } from '../../electron/core/gate/inspect.ts';
import { laneFiles } from '../../electron/core/gate/lane-files.ts';
import {
  gateIn,
  LANDLORD,
  LANE_8080,
  nodeHolder,
  privately,
  pythonHolder,
  runToEnd,
  startOther,
  tempFolder,
  URL_8080,
  until,
} from '../support/gate.ts';

const turn = (...rest: readonly string[]): readonly string[] => [
  LANDLORD,
  'turn',
  '--backend',
  URL_8080,
  ...rest,
];
const inRoot = (root: string): Readonly<Record<string, string>> => ({ VRAM_LANDLORD_GATE_DIR: root });

describe('landlord turn', () => {
  it('becomes its command: one process, the sidecar’s, with the lane until it ends', async () => {
    using folder = tempFolder('turn');
    const options = { env: inRoot(folder.path) };
    const command = turn(
      '--session',
      'writer',
      '--model',
      'm',
      '--class',
      'batch',
      '--',
      'sh',
      '-c',
      'echo $$ $LANDLORD_TURN; read _; exit 3',
    );
    await using agent = startOther(command, options);
    const [pid, id] = (await agent.line()).split(' ');
    expect(Number(pid)).toBe(agent.pid);
    const sidecar: unknown = JSON.parse(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8'));
    expect(sidecar).toMatchObject({
      pid: agent.pid,
      session: 'writer',
      model: 'm',
      class: 'batch',
      turn: id,
    });
    const lane = laneFiles(folder.path, LANE_8080);
    expect(inspectLane(lane)).toMatchObject({
      held: true,
      holders: [{ pid: agent.pid, session: 'writer', command: expect.stringContaining('sh -c') }],
    });
    await agent.end();
    expect(agent.child.exitCode).toBe(3);
    expect(inspectLane(lane).held).toBe(false);
  });

  it('frees the lane when its command is killed outright, and ends by that very signal', async () => {
    using folder = tempFolder('turn');
    const { gate } = gateIn(folder.path);
    await using agent = startOther(turn('--', 'sh', '-c', 'echo on; read _'), { env: inRoot(folder.path) });
    await agent.line();
    expect(gate.tryTurn(URL_8080).kind).toBe('busy');
    await agent.kill();
    expect(agent.child.signalCode).toBe('SIGKILL');
    using next = gate.tryTurn(URL_8080);
    expect(next.kind).toBe('held');
    next[Symbol.dispose]();
    const shell = runToEnd(
      ['sh', '-c', '"$@"; echo $?', 'sh', ...turn('--', 'sh', '-c', 'kill -TERM $$')],
      inRoot(folder.path),
    );
    expect(shell.stdout).toBe('143\n');
  });

  it('is deflected with 75 and one line that names session, holder and age', async () => {
    using folder = tempFolder('turn');
    await using holder = await nodeHolder(folder.path, 'writer');
    const busy = runToEnd(turn('--session', 'reader', '--', 'echo', 'never'), inRoot(folder.path));
    expect(busy).toMatchObject({ status: 75, stdout: '' });
    expect(busy.stderr).toMatch(
      new RegExp(
        `^local_backend_busy: local model in use by another session \\(session writer, pid ${holder.pid} .*, for \\d+ (ms|s)\\)\n$`,
      ),
    );
  });

  it('passes under a program of any language that holds the lock and says nothing (rule 20)', () => {
    using folder = tempFolder('turn');
    const script =
      'import fcntl,os,subprocess,sys\nfd=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT,0o600)\nfcntl.flock(fd,fcntl.LOCK_EX)\nsys.exit(subprocess.call(sys.argv[2:]))';
    const path = join(folder.path, `${LANE_8080}.lock`);
    const command = ['python3', '-c', script, path, ...turn('--wait', '600', '--', 'echo', 'mine')];
    expect(runToEnd(command, inRoot(folder.path))).toMatchObject({ status: 0, stdout: 'mine\n' });
  });

  it('passes in each of the lanes of the turns it is inside of, with an environment or without', () => {
    using folder = tempFolder('turn');
    const on = (port: number, ...rest: readonly string[]): readonly string[] => [
      LANDLORD,
      'turn',
      '--backend',
      `http://127.0.0.1:${port}`,
      '--wait',
      '600',
      '--',
      ...rest,
    ];
    const innermost = on(8080, 'sh', '-c', 'echo $LANDLORD_TURN');
    // Node keeps what it inherits from its own children, so here only the ancestors tell.
    const script =
      'process.exit(require("child_process").spawnSync(process.argv[1], process.argv.slice(2), { stdio: "inherit" }).status)';
    const node = [process.execPath, '-e', script, '--'];
    const two = runToEnd(on(8080, ...node, ...on(9090, ...node, ...innermost)), inRoot(folder.path));
    expect(two).toMatchObject({ status: 0, stdout: expect.stringMatching(/^[\w-]+,[\w-]+\n$/) });
    const clean = ['env', '-u', 'LANDLORD_TURN'];
    const scrubbed = on(8080, ...node, ...on(9090, ...clean, ...node, ...innermost));
    expect(runToEnd(scrubbed, inRoot(folder.path)).status).toBe(0);
  });

  it('does not pass for a stranger that has copied the turn’s name', async () => {
    using folder = tempFolder('turn');
    await using agent = startOther(turn('--', 'sh', '-c', 'echo $LANDLORD_TURN; read _'), {
      env: inRoot(folder.path),
    });
    const name = await agent.line();
    const env = { ...inRoot(folder.path), LANDLORD_TURN: name };
    expect(runToEnd(turn('--', 'true'), env).status).toBe(75);
  });

  it('waits as long as it is told, and no longer', async () => {
    using folder = tempFolder('turn');
    await using holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    expect(runToEnd(turn('--wait', '0.2', '--', 'true'), inRoot(folder.path)).status).toBe(75);
    await using waiter = startOther(turn('--wait', '600', '--', 'echo', 'mine'), {
      env: inRoot(folder.path),
    });
    await until(() => inspectLane(laneFiles(folder.path, LANE_8080)).waiting === 1, 'it waits');
    await holder.end();
    expect(await waiter.line()).toBe('mine');
  });

  it('passes inside a held turn, through any number of programs (rule 20)', () => {
    using folder = tempFolder('turn');
    const inner = [...turn('--session', 'other', '--wait', '600', '--'), 'sh', '-c', 'echo $LANDLORD_TURN'];
    const nested = runToEnd(
      [...turn('--', 'sh', '-c', 'echo $LANDLORD_TURN; "$@"', 'sh'), 'env', ...inner],
      inRoot(folder.path),
    );
    expect(nested.status).toBe(0);
    const [outer, same] = nested.stdout.trim().split('\n');
    expect(outer).toBeTruthy();
    expect(same).toBe(outer);
  });

  it('passes where the lock was inherited, also without a name', () => {
    using folder = tempFolder('turn');
    const path = join(folder.path, `${LANE_8080}.lock`);
    writeFileSync(path, '');
    const shell = ['sh', '-c', 'lock=$1; shift; exec 9<"$lock"; flock -n 9 && "$@"', 'sh', path];
    expect(runToEnd([...shell, ...turn('--', 'echo', 'mine')], inRoot(folder.path)).stdout).toBe('mine\n');
  });

  it('is one lane for every HOME, folder and spelling', async () => {
    using folder = tempFolder('turn');
    await using _agent = await nodeHolder(folder.path, 'writer', 'http://[::1]:8080');
    for (const url of ['http://LOCALHOST:8080/v1/', '127.0.0.1:8080', 'http://127.1:8080']) {
      const command = [LANDLORD, 'turn', '--backend', url, '--', 'true'];
      expect(
        runToEnd(command, { ...inRoot(folder.path), HOME: folder.path, XDG_STATE_HOME: '/tmp' }, folder.path)
          .status,
        url,
      ).toBe(75);
    }
  });

  it('just runs the command for a backend on another machine', () => {
    using folder = tempFolder('turn');
    const root = join(folder.path, 'gates');
    const command = [
      LANDLORD,
      'turn',
      '--backend',
      'https://api.example.com/v1',
      '--',
      'sh',
      '-c',
      'echo "[$LANDLORD_TURN]"; exit 9',
    ];
    expect(runToEnd(command, inRoot(root))).toMatchObject({ status: 9, stdout: '[]\n', stderr: '' });
    expect(existsSync(root)).toBe(false);
  });

  it('says that a lone word takes no lane: it is a backend’s name, most likely', () => {
    using folder = tempFolder('turn');
    const named = [LANDLORD, 'turn', '--backend', 'no-such-host', '--', 'true'];
    expect(runToEnd(named, inRoot(folder.path))).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/no-such-host is no address of this machine, so no lane.*write its URL/),
    });
    expect(runToEnd([LANDLORD, 'gate', 'no-such-host'], inRoot(folder.path)).stdout).toMatch(/write its URL/);
  });

  it('leaves its command the world as it was: signals, streams, descriptors, environment', () => {
    using folder = tempFolder('turn');
    const script =
      'grep SigIgn /proc/self/status; cat /proc/self/fdinfo/1 | grep flags; echo $# "$1" "$2"; env | grep -c COMPILE_CACHE; ls /proc/self/fd | wc -l';
    const run = (command: readonly string[]): readonly string[] =>
      runToEnd(
        ['sh', '-c', 'unset NODE_COMPILE_CACHE; "$@" | cat', 'sh', ...command],
        inRoot(folder.path),
      ).stdout.split('\n');
    const command = ['sh', '-c', script, 'sh', 'two words', '--wait'];
    const plain = run(command);
    const inTurn = run(turn('--', ...command));
    expect(inTurn[0]).toMatch(/0000000000000000$/);
    expect(inTurn.slice(1, 4)).toEqual(plain.slice(1, 4));
    // The lock's own, and no other.
    expect(Number(inTurn[4])).toBe(Number(plain[4]) + 1);
  });

  it('finds no command: 127; may not run it: 126; and takes no lane for either', () => {
    using folder = tempFolder('turn');
    const file = join(folder.path, 'plain');
    writeFileSync(file, 'not a program');
    chmodSync(file, 0o644);
    const root = join(folder.path, 'gates');
    expect(runToEnd(turn('--', 'no-such-command-here'), inRoot(root))).toMatchObject({
      status: 127,
      stderr: 'landlord turn: no-such-command-here: command not found.\n',
    });
    expect(runToEnd(turn('--', file), inRoot(root)).status).toBe(126);
    expect(existsSync(root)).toBe(false);
  });

  it.each([
    [['turn', '--', 'true'], '--backend is missing'],
    [['turn', '--backend', URL_8080], 'The command is missing'],
    [['turn', '--backend', URL_8080, '--'], 'The command after -- is missing'],
    [['turn', '--backend', URL_8080, 'true'], 'The command is missing'],
    [['turn', '--backend', URL_8080, 'odd', '--', 'true'], 'odd stands before --'],
    [['turn', '--backend', URL_8080, '--wait', 'long', '--', 'true'], '--wait takes seconds'],
    [
      ['turn', '--backend', URL_8080, '--wait', '-1', '--', 'true'],
      '--wait takes seconds from 0 to 3600, not -1.',
    ],
    [['turn', '--backend', URL_8080, '--class', 'urgent', '--', 'true'], '--class is interactive or batch'],
    [['gate'], 'URL is missing'],
    [['gate', '8080'], "landlord gate: “8080” is not a backend's URL; write http://127.0.0.1:8080.\n"],
  ])('%j is a usage error', (args, message) => {
    const { status, stderr } = runToEnd([LANDLORD, ...args], inRoot('/nowhere'));
    expect(status).toBe(64);
    expect(stderr).toContain(message);
    expect(stderr).toContain('Usage: landlord');
  });
});

describe('landlord gate', () => {
  const gate = (...rest: readonly string[]): readonly string[] => [LANDLORD, 'gate', ...rest];

  it('tells idle by 0 and held by 75, with place, inode, holder and age', async () => {
    using folder = tempFolder('turn');
    expect(runToEnd(gate('localhost:8080'), inRoot(folder.path))).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('idle'),
    });
    await using holder = await nodeHolder(folder.path, 'writer');
    const text = runToEnd(gate('http://[::1]:8080/v1'), inRoot(folder.path));
    expect(text.status).toBe(75);
    expect(text.stdout).toContain(`${join(folder.path, LANE_8080)}.lock  inode `);
    expect(text.stdout).toContain('set by VRAM_LANDLORD_GATE_DIR');
    expect(text.stdout).toContain('session writer');
    const json = runToEnd(gate(URL_8080, '--json'), inRoot(folder.path));
    expect(json.status).toBe(75);
    expect(JSON.parse(json.stdout)).toMatchObject({
      rootFrom: 'override',
      path: join(folder.path, `${LANE_8080}.lock`),
      inode: expect.any(Number),
      width: 1,
      held: true,
      holders: [{ pid: holder.pid, session: 'writer', heldForMs: expect.any(Number) }],
    });
  });

  it('counts a wider lane as held when no slot is free', () => {
    using folder = tempFolder('turn');
    writeFileSync(join(folder.path, `${LANE_8080}.width`), '2');
    const { gate: lanes } = gateIn(folder.path);
    using _one = lanes.tryTurn(URL_8080, { session: 'a' });
    const half = runToEnd(gate(URL_8080), inRoot(folder.path));
    expect(half).toMatchObject({ status: 0, stdout: expect.stringContaining('1 of 2 held') });
    using _two = lanes.tryTurn(URL_8080, { session: 'b' });
    expect(runToEnd(gate(URL_8080), inRoot(folder.path)).status).toBe(75);
  });

  it('says that another machine’s backend has no lane', () => {
    expect(runToEnd(gate('https://api.example.com/v1'), {})).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('take no lane'),
    });
  });

  it('says unknown by 4 where no lane can be', () => {
    expect(runToEnd(gate(URL_8080), inRoot(LANDLORD)).status).toBe(4);
  });

  it.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a pipe', (path: string) => runToEnd(['mkfifo', path])],
    ['a link', (path: string) => symlinkSync(LANDLORD, path)],
    ['a link', (path: string) => symlinkSync('/no/such/place', path)],
  ])('says unknown by 4, and why, where %s is in the lock’s place', (what, put) => {
    using folder = tempFolder('turn');
    put(join(folder.path, `${LANE_8080}.lock`));
    const { status, stdout } = runToEnd(gate(URL_8080), inRoot(folder.path));
    expect(status).toBe(4);
    expect(stdout).toContain(
      `${LANE_8080}.lock is ${what} and no plain file, so turns go on without this lane`,
    );
    const ran = runToEnd(turn('--', 'echo', 'ran'), inRoot(folder.path));
    expect(ran).toMatchObject({ status: 0, stdout: 'ran\n' });
  });

  it('says unknown by 4, and why, where the root lies anywhere under a file', () => {
    for (const below of ['a', 'a/b', 'a/b/c']) {
      const { status, stdout } = runToEnd(gate(URL_8080), inRoot(join(LANDLORD, below)));
      expect(status, below).toBe(4);
      expect(stdout).toContain(`${LANDLORD} is no folder`);
    }
  });

  it.each(['width', 'means', 'json'])('neither hangs nor is fooled by a pipe at .%s', async (ending) => {
    using folder = tempFolder('turn');
    const path = join(folder.path, `${LANE_8080}.${ending}`);
    const put = (): void => {
      rmSync(path, { force: true });
      runToEnd(['mkfifo', path]);
    };
    put();
    const told = runToEnd(turn('--', 'echo', 'ran'), inRoot(folder.path));
    expect(told).toMatchObject({ status: 0, stdout: 'ran\n' });
    await using _holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    put();
    const busy = runToEnd(turn('--', 'true'), inRoot(folder.path));
    expect(busy.status).toBe(75);
    expect(busy.stderr.split('\n').filter((line) => line.includes(path))).toHaveLength(1);
    const seen = runToEnd(gate(URL_8080), inRoot(folder.path));
    expect(seen.status).toBe(75);
    expect(seen.stdout).toContain(path);
  });

  it('shows a holder of a slot that the lane no longer has', () => {
    using folder = tempFolder('turn');
    const width = join(folder.path, `${LANE_8080}.width`);
    writeFileSync(width, '2');
    const { gate: lanes } = gateIn(folder.path);
    const one = lanes.tryTurn(URL_8080, { session: 'a' });
    using _two = lanes.tryTurn(URL_8080, { session: 'b' });
    rmSync(width);
    one[Symbol.dispose]();
    const { status, stdout } = runToEnd(gate(URL_8080), inRoot(folder.path));
    expect(status).toBe(0);
    expect(stdout).toContain('session b');
  });

  const inNamespace = ['unshare', ...(process.geteuid?.() === 0 ? [] : ['-r']), '-f', '-p', '--mount-proc'];
  if (runToEnd([...inNamespace, 'true']).status === 0) {
    it('says unknown by 4 in a pid namespace, where holders outside are not shown (rule 12)', async () => {
      using folder = tempFolder('turn');
      await using _holder = await nodeHolder(folder.path, 'writer');
      expect(runToEnd([...inNamespace, ...gate(URL_8080)], inRoot(folder.path)).status).toBe(4);
      // The lock itself is seen by all.
      expect(runToEnd([...inNamespace, ...turn('--', 'true')], inRoot(folder.path)).status).toBe(75);
    });
  }

  if (runToEnd([...inNamespace.filter((word) => word !== '--mount-proc'), 'true']).status === 0) {
    it('takes a turn’s name in a pid namespace only from outside, and only while the lane is held (rule 20)', async () => {
      using folder = tempFolder('turn');
      const closing = [
        'python3',
        '-c',
        'import os, sys\nos.closerange(3, 99)\nsys.exit(os.spawnvp(os.P_WAIT, sys.argv[1], sys.argv[1:]))',
      ];
      const inner = turn('--', 'echo', 'mine');
      const passes = runToEnd(
        turn('--supervise', '--', ...inNamespace, ...closing, ...inner),
        inRoot(folder.path),
      );
      expect(passes).toMatchObject({ status: 0, stdout: 'mine\n' });
      await using _holder = await nodeHolder(folder.path, 'writer');
      const name: { readonly turn: string } = JSON.parse(
        readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8'),
      );
      const copied = ['sh', '-c', 'LANDLORD_TURN=$0 "$@"; exit $?', name.turn, ...inner];
      expect(runToEnd([...inNamespace, ...copied], inRoot(folder.path)).status).toBe(75);
    });
    it('is nested in a pid namespace by the lock it inherits alone, whatever /proc shows there (rule 20)', async () => {
      using folder = tempFolder('turn');
      const inner = turn('--', 'echo', 'mine');
      for (const space of [inNamespace, inNamespace.filter((word) => word !== '--mount-proc')]) {
        const nested = runToEnd(turn('--', ...space, ...inner), inRoot(folder.path));
        expect(nested).toMatchObject({ status: 0, stdout: 'mine\n' });
        // A stranger there has the pid of some process outside, and must not be taken for it.
        await using _holder = await nodeHolder(folder.path, 'writer');
        expect(runToEnd([...space, ...inner], inRoot(folder.path)).status).toBe(75);
      }
    });
  }

  it('says busy by 75 also where nobody can read why', async () => {
    using folder = tempFolder('turn');
    await using _holder = await nodeHolder(folder.path, 'writer');
    for (const unread of ['2>&-', '2>/dev/full', '2>&1 >/dev/null | :']) {
      const script = `{ "$@"; echo $? >&3; } ${unread}`;
      const run = runToEnd(
        ['sh', '-c', `exec 3>&1; ${script}`, 'sh', ...turn('--', 'echo', 'ran')],
        inRoot(folder.path),
      );
      expect(run.stdout, unread).toBe('75\n');
    }
  });

  it('makes the root that all users share', () => {
    using folder = tempFolder('turn');
    const base = join(folder.path, 'lib');
    const prefix = privately('mount -t tmpfs tmpfs /var/lib');
    const made = runToEnd([LANDLORD, 'gate', '--machine-wide'], {
      LANDLORD_TEST_MACHINE_WIDE_ROOT: join(base, 'gates'),
    });
    expect(made).toMatchObject({ status: 0, stdout: expect.stringContaining('is made') });
    if (prefix !== null && process.geteuid?.() === 0) {
      const script =
        '"$1" gate --machine-wide >/dev/null && "$1" turn --backend localhost:8080 -- "$1" gate localhost:8080 --json';
      const inside = runToEnd([...prefix, 'sh', '-c', script, 'sh', LANDLORD], {});
      expect(JSON.parse(inside.stdout)).toMatchObject({
        held: true,
        rootFrom: 'machine-wide',
        path: `/var/lib/vram-landlord/gates/${LANE_8080}.lock`,
      });
    }
  });
});
