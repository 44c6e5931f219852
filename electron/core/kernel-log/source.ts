import { type ChildProcess, spawn } from 'node:child_process';
import { uptime } from 'node:os';
import { journalSpeaks } from './access.ts';
import { journalMessage, kmsgMessage } from './trouble.ts';

export interface KernelLog {
  /** Why nothing is read, in a sentence; null while it is. */
  note(): string | null;
  stop(): void;
}

/** A reader that ended at once has no permission, or nothing to read. */
const AT_ONCE_MS = 3_000;
const AGAIN_MS = 60_000;
const MAX_LINE = 64 * 1024;

interface Reader {
  readonly command: string;
  readonly args: readonly string[];
  readonly message: (line: string) => string | null;
}

/**
 * Follows the kernel's log from now on, read-only: the journal where it shows the kernel's messages, else /dev/kmsg. Each in a process of its own,
 * without a shell; where neither may be read that is said, and nothing else happens.
 */
export function followKernelLog(onMessage: (message: string) => void): KernelLog {
  const sinceUs = uptime() * 1e6;
  const readers: readonly Reader[] = [
    {
      command: 'journalctl',
      args: ['--dmesg', '--follow', '--lines=0', '--output=json', '--quiet'],
      message: journalMessage,
    },
    // A thread of ours would wait in its read for ever.
    { command: 'cat', args: ['/dev/kmsg'], message: (line) => kmsgMessage(line, sinceUs) },
  ];
  let child: ChildProcess | null = null;
  let timer: NodeJS.Timeout | null = null;
  let note: string | null = null;
  let isStopped = false;

  const start = (index: number): void => {
    const reader = readers[index];
    if (reader === undefined) {
      note =
        "The kernel's log can't be read, so that trouble of the driver is not told: join the group systemd-journal or adm for that.";
      return;
    }
    const startedAtMs = performance.now();
    const running = spawn(reader.command, reader.args, { stdio: ['ignore', 'pipe', 'ignore'] });
    child = running;
    let rest = '';
    running.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = (lines.pop() ?? '').slice(-MAX_LINE);
      for (const line of lines) {
        const message = reader.message(line);
        if (message !== null) onMessage(message);
      }
    });
    let isOver = false;
    const over = (): void => {
      if (isOver || isStopped) return;
      isOver = true;
      child = null;
      if (performance.now() - startedAtMs < AT_ONCE_MS) start(index + 1);
      else timer = setTimeout(() => start(0), AGAIN_MS);
    };
    running.once('error', over);
    running.once('close', over);
    running.unref();
  };
  void journalSpeaks().then((speaks) => {
    if (!isStopped) start(speaks ? 0 : 1);
  });
  return {
    note: () => note,
    stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      child?.kill();
    },
  };
}
