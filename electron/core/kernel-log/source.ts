import { type ChildProcess, spawn } from 'node:child_process';
import { journalSpeaks } from './access.ts';
import { followKmsg, type KmsgReader } from './kmsg.ts';
import { journalMessage } from './trouble.ts';

export interface KernelLog {
  /** Why nothing is read, in a sentence; null while it is. */
  note(): string | null;
  stop(): void;
}

/** A journal that ended at once has nothing to read. */
const AT_ONCE_MS = 3_000;
const AGAIN_MS = 60_000;
const MAX_LINE = 64 * 1024;
const FOLLOW = ['--dmesg', '--follow', '--lines=0', '--output=json', '--quiet'];

/**
 * Follows the kernel's log from now on, read-only: the journal where it shows the kernel's messages, else
 * /dev/kmsg. The journal in a process of its own, without a shell, which ends when nobody reads it any
 * more; where neither may be read that is said, and nothing else happens.
 */
export function followKernelLog(onMessage: (message: string) => void, kmsgPath = '/dev/kmsg'): KernelLog {
  let child: ChildProcess | null = null;
  let kmsg: KmsgReader | null = null;
  let timer: NodeJS.Timeout | null = null;
  let note: string | null = null;
  let isStopped = false;

  const readKmsg = (): void => {
    kmsg = followKmsg(kmsgPath, onMessage);
    if (kmsg === null)
      note =
        "The kernel's log can't be read, so that trouble of the driver is not told: join the group systemd-journal or adm for that.";
  };

  const readJournal = (): void => {
    const startedAtMs = performance.now();
    let running: ChildProcess;
    try {
      // Without a descriptor left there is a child with no streams, and an error follows; or `spawn` throws.
      running = spawn('journalctl', FOLLOW, { stdio: ['ignore', 'pipe', 'ignore'] });
    } catch {
      readKmsg();
      return;
    }
    child = running;
    let rest = '';
    running.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = (lines.pop() ?? '').slice(-MAX_LINE);
      for (const line of lines) {
        const message = journalMessage(line);
        if (message !== null) onMessage(message);
      }
    });
    let isOver = false;
    const over = (): void => {
      if (isOver || isStopped) return;
      isOver = true;
      child = null;
      if (performance.now() - startedAtMs < AT_ONCE_MS) readKmsg();
      else timer = setTimeout(readJournal, AGAIN_MS);
    };
    running.once('error', over);
    running.once('close', over);
    running.unref();
  };

  void journalSpeaks().then((speaks) => {
    if (isStopped) return;
    if (speaks) readJournal();
    else readKmsg();
  });
  return {
    note: () => note,
    stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      child?.kill();
      kmsg?.stop();
    },
  };
}
