import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { armSignal } from '../../../electron/core/actuators/reaper.ts';
import type { ProcessIdentity } from '../../../electron/core/process/identity.ts';
import { openPid } from '../../../electron/core/process/pidfd.ts';
import { procfs } from '../../../electron/core/process/procfs.ts';

/** Signals to real processes, each started here; what must not be touched is looked at afterwards. */
const started: ChildProcess[] = [];

afterEach(() => {
  vi.restoreAllMocks();
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** A real process that listens on a port of its own. */
async function listener(): Promise<{ readonly child: ChildProcess; readonly identity: ProcessIdentity }> {
  const code =
    "const s=require('node:net').createServer().listen(0,'127.0.0.1',()=>console.log(s.address().port))";
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
  started.push(child);
  if (child.stdout === null || child.pid === undefined) throw new Error('the child did not start');
  const [line] = await once(child.stdout, 'data');
  const [facts] = procfs().facts([child.pid]);
  if (facts?.command == null) throw new Error('the child has no command line');
  return {
    child,
    identity: {
      pid: child.pid,
      startTimeTicks: facts.startTimeTicks,
      command: facts.command,
      port: Number(String(line)),
      parentPid: facts.parentPid,
      parentStartTimeTicks: facts.parentStartTimeTicks,
    },
  };
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

describe('rule 10: a signal is sent only to a proven process', () => {
  it('ends the process whose pid, start, command line, port and parent all match', async () => {
    const { child, identity } = await listener();
    const exited = once(child, 'exit');
    const armed = await armSignal(identity);
    if (!armed.ok) throw new Error(armed.error.message);
    expect(isAlive(child)).toBe(true);
    const killed = await armed.value.kill();
    expect(killed).toMatchObject({ ok: true, value: { goneAfterMs: expect.any(Number) } });
    expect((await exited)[1]).toBe('SIGKILL');
    armed.value[Symbol.dispose]();
  });

  it('refuses in a sentence where no process can be started for the proof', async () => {
    const { child, identity } = await listener();
    // Through a file: there `fork` throws, as it does where there is no memory for a process.
    vi.spyOn(process, 'execPath', 'get').mockReturnValue('/etc/passwd/node');
    expect(await armSignal(identity)).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/could not be started: .*ENOTDIR/) },
    });
    expect(isAlive(child)).toBe(true);
  });

  it.each<[string, Partial<ProcessIdentity>, RegExp]>([
    ['started at another time (a reused pid)', { startTimeTicks: 1 }, /another process/],
    ['runs another command line', { command: ['llama-server', '--port', '1'] }, /another command line/],
    ['listens on another port', { port: 1 }, /does not listen on port 1/],
    ['has another parent', { parentPid: 1 }, /has parent/],
    ['has a parent that started at another time', { parentStartTimeTicks: 1 }, /parent .* another process/],
  ])('does not touch a process that %s', async (_what, change, why) => {
    const { child, identity } = await listener();
    const armed = await armSignal({ ...identity, ...change });
    expect(armed.ok).toBe(false);
    if (!armed.ok) {
      expect(armed.error.code).toBe('not_proven');
      expect(armed.error.message).toMatch(why);
    }
    expect(isAlive(child)).toBe(true);
  });

  it('does not touch what came after the process it was armed for', async () => {
    const { child, identity } = await listener();
    const other = await listener();
    const armed = await armSignal(identity);
    if (!armed.ok) throw new Error(armed.error.message);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    const killed = await armed.value.kill();
    expect(killed.ok).toBe(false);
    expect(isAlive(other.child)).toBe(true);
    armed.value[Symbol.dispose]();
  });

  it('says so in time when the reaper itself ends or never answers', async () => {
    const { identity, child } = await listener();
    const broken = await armSignal(
      identity,
      new URL('../../fixtures/no-such-reaper.ts', import.meta.url).pathname,
    );
    expect(broken).toMatchObject({ ok: false, error: { code: 'internal' } });
    expect(isAlive(child)).toBe(true);
  });
});

describe('a handle on a process', () => {
  it('kills that process and is content when it is gone already', async () => {
    const { child } = await listener();
    const handle = openPid(child.pid ?? 0);
    if (!handle.ok) throw new Error(handle.error.message);
    using open = handle.value;
    const exited = once(child, 'exit');
    expect(open.kill().ok).toBe(true);
    await exited;
    expect(open.kill().ok).toBe(true);
  });

  it.each([0, 1, -1, 1.5])('refuses pid %s', (pid) => {
    expect(openPid(pid)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  });

  it('says that a process is gone', async () => {
    const { child } = await listener();
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    expect(openPid(child.pid ?? 0)).toMatchObject({ ok: false, error: { code: 'not_proven' } });
  });
});
