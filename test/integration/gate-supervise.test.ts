import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { inspectLane } from '../../electron/core/gate/inspect.ts';
import { laneFiles } from '../../electron/core/gate/lane-files.ts';
import {
  LANDLORD,
  LANE_8080,
  NODE,
  runToEnd,
  startOther,
  tempFolder,
  URL_8080,
  until,
} from '../support/gate.ts';

const turn = (...command: readonly string[]): readonly string[] => [
  LANDLORD,
  'turn',
  '--backend',
  URL_8080,
  '--supervise',
  '--',
  ...command,
];
const CLI = fileURLToPath(new URL('../../electron/cli.ts', import.meta.url));
const inRoot = (root: string): Readonly<Record<string, string>> => ({ VRAM_LANDLORD_GATE_DIR: root });
const isFree = (root: string): boolean =>
  runToEnd(['flock', '-n', join(root, `${LANE_8080}.lock`), 'true']).status === 0;

/** Closes all it has inherited, as a daemon and sudo do, and says so. */
const CLOSING =
  'import os, sys\nos.closerange(3, 4096)\nprint(os.getpid(), flush=True)\nsys.stdin.read()\nsys.exit(9)';

describe('landlord turn --supervise', () => {
  it('keeps the lane for a command that closes what it inherits, until it ends, and has its exit code', async () => {
    using folder = tempFolder('supervise');
    await using agent = startOther(turn('python3', '-c', CLOSING), { env: inRoot(folder.path) });
    const command = Number(await agent.line());
    expect(command).not.toBe(agent.pid);
    expect(isFree(folder.path)).toBe(false);
    expect(inspectLane(laneFiles(folder.path, LANE_8080))).toMatchObject({
      held: true,
      holders: [{ pid: agent.pid }],
    });
    await agent.end();
    expect(agent.child.exitCode).toBe(9);
    expect(isFree(folder.path)).toBe(true);
  });

  it('passes for the turns of its command, which has nothing of it but an ancestor', () => {
    using folder = tempFolder('supervise');
    const script =
      'import os, subprocess, sys\nos.closerange(3, 4096)\nos.environ.pop("LANDLORD_TURN")\nsys.exit(subprocess.call(sys.argv[1:]))';
    const inner = [LANDLORD, 'turn', '--backend', URL_8080, '--wait', '600', '--', 'echo', 'mine'];
    const run = runToEnd(turn('python3', '-c', script, ...inner), inRoot(folder.path));
    expect(run).toMatchObject({ status: 0, stdout: 'mine\n' });
  });

  it('passes signals on, and ends the turn with its command though something left behind has the lock open', async () => {
    using folder = tempFolder('supervise');
    const script = 'trap "exit 4" USR1; sleep 60 & echo $!; while :; do sleep 0.05; done';
    await using agent = startOther(turn('sh', '-c', script), { env: inRoot(folder.path) });
    const left = Number(await agent.line());
    try {
      agent.child.kill('SIGUSR1');
      await once(agent.child, 'exit');
      expect(agent.child.exitCode).toBe(4);
      expect(isFree(folder.path)).toBe(true);
    } finally {
      process.kill(left, 'SIGKILL');
    }
  });

  it('ends its command when it is killed outright', async () => {
    using folder = tempFolder('supervise');
    await using agent = startOther(turn('python3', '-c', CLOSING), { env: inRoot(folder.path) });
    const command = Number(await agent.line());
    process.kill(agent.pid, 'SIGKILL');
    await until(() => isGone(command), 'the command is gone');
    await until(() => isFree(folder.path), 'the lane is free');
  });

  it('ends its command also when it was killed before the command could ask for that', async () => {
    using folder = tempFolder('supervise');
    // Stands where setpriv is looked for first: kills whoever started it, and goes on once it is another's child
    // (all threads of the killed one have ended then).
    const early = join(folder.path, 'setpriv');
    const log = join(folder.path, 'log');
    writeFileSync(
      early,
      `#!/bin/sh\nkill -KILL $PPID\nnow=$PPID\nwhile [ $now = $PPID ]; do read -r _ _ _ now _ </proc/$$/stat; done\necho $$ >${log}.new; mv ${log}.new ${log}.pid\nexec /usr/bin/setpriv "$@"\n`,
      { mode: 0o755 },
    );
    await using agent = startOther(turn('sh', '-c', `echo ran >${log}; exec sleep 60`), {
      env: { ...inRoot(folder.path), PATH: `${folder.path}:${process.env.PATH}`, PWD: folder.path },
    });
    await once(agent.child, 'exit');
    await until(() => existsSync(`${log}.pid`), 'the command is on its way');
    const command = Number(readFileSync(`${log}.pid`, 'utf8'));
    await until(() => command > 0 && isGone(command), 'the command is gone');
    expect(existsSync(log)).toBe(false);
    expect(isFree(folder.path)).toBe(true);
  });

  it('leaves the environment as it is', () => {
    using folder = tempFolder('supervise');
    // Past the shell that `landlord` itself starts with, which drops such a name.
    const [, ...rest] = turn('env');
    const direct = [...NODE, CLI, ...rest];
    const odd = { 'ODD.NAME': 'kept', PWD: folder.path };
    expect(runToEnd(direct, { ...inRoot(folder.path), ...odd }).stdout).toContain('ODD.NAME=kept\n');
    expect(runToEnd(direct, inRoot(folder.path)).stdout).not.toContain('PWD=');
    const plain = runToEnd(turn('env'), { ...inRoot(folder.path), PWD: folder.path }).stdout.split('\n');
    const names = plain.map((line) => line.split('=')[0]).filter((name) => name !== '');
    const known = [
      'PATH',
      'PWD',
      'VRAM_LANDLORD_REPORTS',
      'VRAM_LANDLORD_GATE_DIR',
      'LANDLORD_TURN',
      'NODE_COMPILE_CACHE',
    ];
    expect(names.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  });

  it('says by 128 + n that its command was killed', () => {
    using folder = tempFolder('supervise');
    expect(runToEnd(turn('sh', '-c', 'kill -KILL $$'), inRoot(folder.path)).status).toBe(137);
    expect(runToEnd(turn('sh', '-c', 'echo $0; exit 3'), inRoot(folder.path))).toMatchObject({
      status: 3,
      stdout: 'sh\n',
    });
  });
});

function isGone(pid: number): boolean {
  try {
    // Whoever was orphaned here may have nobody to collect it.
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}
