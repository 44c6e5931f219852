import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { become } from '../../../electron/core/gate/become.ts';
import type { FileLocker } from '../../../electron/core/gate/locker.ts';
import {
  gateIn,
  LANDLORD,
  LANE_8080,
  runToEnd,
  startOther,
  tempFolder,
  URL_8080,
  until,
} from '../../support/gate.ts';

const NO_EXECVE = fileURLToPath(new URL('../../support/no-execve.ts', import.meta.url));
const turn = (...command: readonly string[]): readonly string[] => [
  LANDLORD,
  'turn',
  '--backend',
  URL_8080,
  '--',
  ...command,
];
const env = (root: string) => ({ VRAM_LANDLORD_GATE_DIR: root, NODE_OPTIONS: `--import=${NO_EXECVE}` });

describe('where a program can not become another, it watches over it', () => {
  it('has the command’s exit code, streams and name', () => {
    using folder = tempFolder();
    const run = (...command: readonly string[]) => runToEnd(turn(...command), env(folder.path));
    expect(run('sh', '-c', 'echo $0 $LANDLORD_TURN >&2; exit 7')).toMatchObject({
      status: 7,
      stderr: expect.stringMatching(/^sh \S+\n$/),
    });
    expect(run('sh', '-c', 'kill -KILL $$').status).toBe(137);
  });

  it('passes signals on, and the lane is free after', async () => {
    using folder = tempFolder();
    await using agent = startOther(
      turn('sh', '-c', 'trap "exit 4" TERM; echo on; while :; do sleep 0.05; done'),
      { env: env(folder.path) },
    );
    await agent.line();
    const { gate } = gateIn(folder.path);
    expect(gate.tryTurn(URL_8080, { session: 'other' }).kind).toBe('busy');
    agent.child.kill('SIGTERM');
    await once(agent.child, 'exit');
    expect(agent.child.exitCode).toBe(4);
    using next = gate.tryTurn(URL_8080);
    expect(next.kind).toBe('held');
  });

  it('leaves the lane with the command when it is killed itself: still one turn at a time', async () => {
    using folder = tempFolder();
    await using agent = startOther(turn('sh', '-c', 'echo $$; exec sleep 60'), { env: env(folder.path) });
    const command = Number(await agent.line());
    expect(command).not.toBe(agent.pid);
    process.kill(agent.pid, 'SIGKILL');
    const { gate } = gateIn(folder.path);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(gate.tryTurn(URL_8080, { session: 'other' }).kind).toBe('busy');
    process.kill(command, 'SIGKILL');
    await until(
      () => runToEnd(['flock', '-n', join(folder.path, `${LANE_8080}.lock`), 'true']).status === 0,
      'it is free',
    );
  });
});

it('a lane whose descriptor can not be kept is not given up by becoming the command', () => {
  const locker: FileLocker = {
    tryLock: () => ({ kind: 'taken' }),
    unlock: () => undefined,
    makeInheritable: () => false,
    handOn: () => undefined,
    blockStreams: () => undefined,
    prepareExec: () => {
      throw new Error('it went on');
    },
  };
  expect(become({ kind: 'runnable', file: '/bin/false', args: ['false'] }, {}, [3], locker)).toBe(false);
});
