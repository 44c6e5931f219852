import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { startTimeOf } from '../../../electron/core/gate/process-start.ts';
import { processTree } from '../../../electron/core/process/process-tree.ts';

const started: number[] = [];

afterEach(() => {
  for (const pid of started.splice(0)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
});

/** A shell that starts a shell that starts a program; the pids of all three, as they say them. */
async function family(): Promise<{ readonly shell: ChildProcess; readonly pids: readonly number[] }> {
  const shell = spawn('sh', ['-c', "echo $$; sh -c 'echo $$; sleep 60 & echo $!; wait'; :"], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  while (text.split('\n').length < 4) {
    const [part] = await once(shell.stdout, 'data');
    text += String(part);
  }
  const pids = text.trim().split('\n').map(Number);
  started.push(...pids);
  return { shell, pids };
}

const member = (pid: number | undefined) => ({ pid: pid ?? 0, startTimeTicks: startTimeOf(pid ?? 0) });

describe('the processes of a job', () => {
  it('are its root and all that descend from it', async () => {
    const { pids } = await family();
    const tree = await processTree([member(pids[0])]);
    expect(tree).toEqual(pids.map(member));
  });

  it('are not those that took over the pid of one that is gone', async () => {
    const { pids } = await family();
    const [root] = pids;
    const before = { pid: root ?? 0, startTimeTicks: (startTimeOf(root ?? 0) ?? 0) - 1 };
    expect(await processTree([before])).toEqual([]);
    expect(await processTree([{ pid: 2 ** 22 + 1, startTimeTicks: null }])).toEqual([]);
  });

  it('stay known when the parent that started them is gone', async () => {
    const { shell, pids } = await family();
    const all = await processTree([member(pids[0])]);
    const gone = once(shell, 'exit');
    shell.kill('SIGKILL');
    await gone;
    expect((await processTree(all)).map((one) => one.pid)).toEqual(pids.slice(1));
  });

  it('are each counted once, whoever names them', async () => {
    const { pids } = await family();
    const roots = [member(pids[1]), member(pids[0]), member(pids[1])];
    const tree = await processTree(roots);
    expect(tree.map((one) => one.pid).toSorted()).toEqual([...pids].toSorted());
  });
});
