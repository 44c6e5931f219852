import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { ACTION_KINDS, type LandlordEvent } from '../../../shared/events.ts';
import { syslogLine } from './syslog-line.ts';

export interface SyslogOptions {
  /** Why nothing reaches the log, in a sentence; called once. */
  readonly onMissing: (why: string) => void;
  readonly program?: string;
  /** Sockets of which one must be there: the program itself ends well without any. */
  readonly sockets?: readonly string[];
  /** A program that hangs is ended after this. */
  readonly limitMs?: number;
}

const SOCKETS = ['/dev/log', '/run/systemd/journal/dev-log', '/var/run/syslog'];
const LIMIT_MS = 5000;
/** Lines that wait while one is being written. */
const WAITING_MAX = 50;

/**
 * One line in syslog or the journal for each event that is an action (design §5.5). Node has no datagram
 * sockets of the file system, so `logger` writes it; its arguments pass through no shell.
 */
export class Syslog {
  readonly #options: Required<SyslogOptions>;
  #waiting: string[] = [];
  #running: ChildProcess | null = null;
  #toldMissing = false;
  #idle: (() => void)[] = [];

  constructor(options: SyslogOptions) {
    this.#options = { program: 'logger', sockets: SOCKETS, limitMs: LIMIT_MS, ...options };
  }

  /** Returns at once; never throws. */
  write(event: LandlordEvent): void {
    if (!ACTION_KINDS.has(event.kind)) return;
    this.#waiting = [...this.#waiting, syslogLine(event)].slice(-WAITING_MAX);
    this.#next();
  }

  /** Once all that was given is written or given up. */
  async flush(): Promise<void> {
    if (this.#running === null && this.#waiting.length === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #next(): void {
    if (this.#running !== null) return;
    const line = this.#waiting.shift();
    if (line === undefined) {
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    if (!this.#options.sockets.some((socket) => existsSync(socket))) {
      this.#missing('there is no syslog or journal on this machine');
      this.#next();
      return;
    }
    this.#spawn(line);
  }

  #spawn(line: string): void {
    const { program, limitMs } = this.#options;
    let over = false;
    const done = (why: string | null) => {
      if (over) return;
      over = true;
      this.#running = null;
      if (why !== null) this.#missing(why);
      this.#next();
    };
    try {
      const child = spawn(program, ['-t', 'vram-landlord', '-p', 'daemon.notice', '--', line], {
        stdio: 'ignore',
        timeout: limitMs,
        killSignal: 'SIGKILL',
      });
      this.#running = child;
      child.once('error', (error) =>
        done(
          'code' in error && error.code === 'ENOENT' ? `there is no ${program} program here` : error.message,
        ),
      );
      child.once('exit', (code) => done(code === 0 ? null : `${program} ended with ${code ?? 'a signal'}`));
    } catch (error) {
      done(error instanceof Error ? error.message : String(error));
    }
  }

  #missing(why: string): void {
    if (this.#toldMissing) return;
    this.#toldMissing = true;
    this.#options.onMissing(
      `Actions are not written to the system log, because ${why}; the event log of VRAM Landlord has them all.`,
    );
  }
}
