import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { electronInhibitor, logindInhibitor, type StartLock } from '../../electron/shell/inhibitor.ts';

const MODULE = fileURLToPath(new URL('../../electron/shell/inhibitor.ts', import.meta.url));

/** What `systemd-inhibit` runs once it has the lock, without the lock. */
const cat: StartLock = (args) => spawn(args.at(-1) ?? '', [], { stdio: ['pipe', 'pipe', 'ignore'] });

describe('inhibitor: a lock of logind', () => {
  it('is held once what it runs answers, and ends with its pipe', async () => {
    const states: string[] = [];
    const asked: string[][] = [];
    let ended = 0;
    const inhibitor = logindInhibitor(
      'block',
      () => states.push(inhibitor.state),
      (args) => {
        asked.push([...args]);
        const child = cat(args);
        child.on('close', () => {
          ended += 1;
        });
        return child;
      },
    );
    inhibitor.hold('A model is answering: 27B');
    inhibitor.hold('again');
    expect(inhibitor.state).toBe('asked');
    await vi.waitFor(() => expect(inhibitor.state).toBe('held'));
    expect(asked).toEqual([
      ['--what=sleep', '--who=VRAM Landlord', '--why=A model is answering: 27B', '--mode=block', '--', 'cat'],
    ]);
    inhibitor.release();
    inhibitor.release();
    expect(states).toEqual(['held', 'free']);
    // What holds the lock has ended, and the lock with it.
    await vi.waitFor(() => expect(ended).toBe(1));
    inhibitor.hold('once more');
    await vi.waitFor(() => expect(inhibitor.state).toBe('held'));
    inhibitor.release();
  });

  it('is refused where logind does not give it, or there is none', async () => {
    for (const program of ['false', 'vram-landlord-no-such-tool']) {
      const inhibitor = logindInhibitor(
        'delay',
        () => {},
        () => spawn(program, [], { stdio: ['pipe', 'pipe', 'ignore'] }),
      );
      inhibitor.hold('x');
      await vi.waitFor(() => expect(inhibitor.state).toBe('refused'));
      inhibitor.release();
      expect(inhibitor.state).toBe('free');
    }
  });

  it('ends with us, however we end', async () => {
    const script = `
      import { spawn } from 'node:child_process';
      import { logindInhibitor } from ${JSON.stringify(MODULE)};
      const inhibitor = logindInhibitor('block', () => {}, () => {
        const child = spawn('cat', [], { stdio: ['pipe', 'pipe', 'ignore'] });
        console.log(child.pid);
        return child;
      });
      inhibitor.hold('x');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const pid = await new Promise<number>((resolve) => {
      child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())));
    });
    const isThere = (): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    expect(isThere()).toBe(true);
    child.kill('SIGKILL');
    await vi.waitFor(() => expect(isThere()).toBe(false), { timeout: 10_000 });
  });
});

describe('inhibitor: elsewhere', () => {
  it('asks Electron once and gives it back', () => {
    const blocker = { start: vi.fn(() => 3), stop: vi.fn() };
    const inhibitor = electronInhibitor(blocker, () => {});
    inhibitor.hold('x');
    inhibitor.hold('y');
    expect(inhibitor.state).toBe('held');
    inhibitor.release();
    inhibitor.release();
    expect(blocker.start).toHaveBeenCalledTimes(1);
    expect(blocker.stop.mock.calls).toEqual([[3]]);
  });
});
