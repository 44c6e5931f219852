/**
 * Keeps the machine from sleeping, or holds its sleep up for a moment, while it is held.
 *
 *   free ──hold()──► asked ──lock taken──► held
 *    ▲                 │ refused, or no such thing here: said so
 *    └──release()──────┴─────────────────────┘
 *
 * On Linux it is a lock of logind, taken by `systemd-inhibit` around a `cat` that waits on our pipe: the
 * kernel closes that pipe when we end, however we end, and the lock ends with the `cat`. Only `sleep` is
 * held, not `idle`: that would keep the screen from locking as well.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/** `block`: no sleep while it is held. `delay`: logind waits for us, 5 s unless its own settings say else. */
export type InhibitMode = 'block' | 'delay';

export type InhibitorState = 'free' | 'asked' | 'held' | 'refused';

export interface Inhibitor {
  readonly state: InhibitorState;
  /** Idempotent; `why` is shown by the desktop to who wants the machine to sleep. */
  hold(why: string): void;
  release(): void;
}

export type StartLock = (args: readonly string[]) => Pick<ChildProcess, 'stdin' | 'stdout' | 'on' | 'kill'>;

const startLock: StartLock = (args) =>
  spawn('systemd-inhibit', [...args], { stdio: ['pipe', 'pipe', 'ignore'] });

/** `onChange` is called when a lock is taken or refused. */
export function logindInhibitor(
  mode: InhibitMode,
  onChange: () => void,
  start: StartLock = startLock,
): Inhibitor {
  let state: InhibitorState = 'free';
  let end = (): void => {};
  const become = (next: InhibitorState): void => {
    if (state === next) return;
    state = next;
    onChange();
  };
  return {
    get state() {
      return state;
    },
    hold(why) {
      if (state === 'asked' || state === 'held') return;
      state = 'asked';
      const child = start([
        '--what=sleep',
        '--who=VRAM Landlord',
        `--why=${why}`,
        `--mode=${mode}`,
        '--',
        'cat',
      ]);
      let current = true;
      end = () => {
        current = false;
        child.stdin?.end();
      };
      // The lock is taken before `cat` runs: what comes back through it proves that it is held.
      child.stdout?.on('data', () => {
        if (current) become('held');
      });
      child.stdin?.on('error', () => {});
      child.stdin?.write('held\n');
      child.on('error', () => {
        if (current) become('refused');
      });
      child.on('close', () => {
        if (current) become('refused');
        current = false;
      });
    },
    release() {
      end();
      end = () => {};
      become('free');
    },
  };
}

/** Elsewhere Electron asks the system; it always gets what it asks for. */
export function electronInhibitor(
  blocker: { start(type: 'prevent-app-suspension'): number; stop(id: number): unknown },
  onChange: () => void,
): Inhibitor {
  let id: number | null = null;
  return {
    get state() {
      return id === null ? 'free' : 'held';
    },
    hold() {
      if (id !== null) return;
      id = blocker.start('prevent-app-suspension');
      onChange();
    },
    release() {
      if (id === null) return;
      blocker.stop(id);
      id = null;
      onChange();
    },
  };
}
