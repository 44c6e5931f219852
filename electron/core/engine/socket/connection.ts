import type { Socket } from 'node:net';
import { assertNever, messageOf } from '../../../../shared/errors.ts';
import type { AgentDesk } from '../desk/desk-api.ts';
import {
  decodeAnswer,
  errorLine,
  helpAnswer,
  listAnswer,
  refusalAnswer,
  registerAnswer,
  statusAnswer,
  unregisterAnswer,
} from './answer.ts';
import { parseCommand } from './command.ts';
import { type Line, LineSplitter } from './line-splitter.ts';

export interface ConnectionLimits {
  /** Bytes of one line. */
  readonly lineBytes: number;
  /** Lines that wait for their turn; more are not read from the socket meanwhile. */
  readonly waitingLines: number;
  /** A client that takes nothing of its answers for this long is left. */
  readonly stalledMs: number;
  /** A client that sends and waits for nothing for this long, and holds no agent, is left. */
  readonly idleMs: number;
  /** How often a client that has closed its sending side is looked after. */
  readonly probeMs: number;
}

/**
 * One client: its lines are answered one after the other, in order, however many it sends at once.
 *
 *   open ─► half closed (it sends no more; its lines are still answered) ─► over
 *
 * At most `waitingLines` lines and one answer of it are in memory.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #desk: AgentDesk;
  readonly #limits: ConnectionLimits;
  readonly #home: string;
  readonly #splitter: LineSplitter;
  readonly #gone = new AbortController();
  readonly #lines: Line[] = [];
  #answering = false;
  #ended = false;
  #bound = false;
  #probe: NodeJS.Timeout | null = null;
  /** Of its last line, or of its last answer. */
  lastAtMs: number;
  readonly #nowMs: () => number;

  constructor(socket: Socket, desk: AgentDesk, limits: ConnectionLimits, home: string, nowMs: () => number) {
    this.#socket = socket;
    this.#desk = desk;
    this.#limits = limits;
    this.#home = home;
    this.#nowMs = nowMs;
    this.lastAtMs = nowMs();
    this.#splitter = new LineSplitter(limits.lineBytes);
    socket.on('data', (chunk: Buffer) => this.#take(this.#splitter.push(chunk)));
    socket.on('end', () => this.#halfClose());
    // 'close' follows, and says all there is to say.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#close());
  }

  /** Neither asks nor holds anything. */
  get isIdle(): boolean {
    return !this.#answering && this.#lines.length === 0 && !this.#bound;
  }

  /** Ends it; a command under way is cancelled. */
  end(reason: string | null): void {
    if (reason !== null && this.#socket.writable) this.#socket.write(`${errorLine('closing', reason)}\n`);
    this.#socket.destroySoon();
    this.#gone.abort();
  }

  #take(lines: readonly Line[]): void {
    this.#lines.push(...lines);
    this.lastAtMs = this.#nowMs();
    if (this.#lines.length >= this.#limits.waitingLines) this.#socket.pause();
    void this.#answerAll();
  }

  #halfClose(): void {
    this.#ended = true;
    this.#take(this.#splitter.end());
    // A client that was killed looks the same as one that only sends no more, until something is
    // written: of nothing the client sees nothing, and of one that is gone the kernel says so.
    this.#probe = setInterval(() => this.#socket.write(''), this.#limits.probeMs);
  }

  async #answerAll(): Promise<void> {
    if (this.#answering) return;
    this.#answering = true;
    for (let line = this.#lines.shift(); line !== undefined && !this.#isGone; line = this.#lines.shift()) {
      const answer = await this.#answer(line);
      this.lastAtMs = this.#nowMs();
      if (answer.length > 0 && !(await this.#write(`${answer.join('\n')}\n`))) break;
      if (this.#lines.length < this.#limits.waitingLines && !this.#isGone) this.#socket.resume();
    }
    this.#answering = false;
    if (this.#ended) this.#finish();
  }

  get #isGone(): boolean {
    return this.#gone.signal.aborted;
  }

  async #answer(line: Line): Promise<readonly string[]> {
    if (line.kind === 'too_long')
      return [
        errorLine('bad_input', `A line has at most ${this.#limits.lineBytes} bytes; this one was dropped.`),
      ];
    if (line.text.trim() === '') return [];
    try {
      return await this.#carryOut(line.text);
    } catch (thrown) {
      return [errorLine('internal', messageOf(thrown))];
    }
  }

  async #carryOut(text: string): Promise<readonly string[]> {
    const parsed = parseCommand(text, this.#home);
    if (!parsed.ok) return refusalAnswer({ error: parsed.error, denial: null });
    const command = parsed.value;
    const { signal } = this.#gone;
    switch (command.type) {
      case 'help':
        return helpAnswer();
      case 'status':
        return statusAnswer(this.#desk.status());
      case 'list':
        return listAnswer(this.#desk.list());
      case 'register': {
        const { type, bind, ...words } = command;
        this.#bound ||= bind;
        const done = await this.#desk.register({ ...words, holder: bind ? this : null }, signal);
        return done.ok ? registerAnswer(done.value) : refusalAnswer(done.error);
      }
      case 'unregister': {
        const done = await this.#desk.unregister(command.agent);
        return done.ok
          ? unregisterAnswer(command.agent, done.value.releasedBytes)
          : refusalAnswer(done.error);
      }
      case 'decode': {
        const done = await this.#desk.decode(command, signal);
        return done.ok ? decodeAnswer(done.value) : refusalAnswer(done.error);
      }
      default:
        return assertNever(command, 'command');
    }
  }

  /** False when the client is gone, or takes nothing. */
  async #write(text: string): Promise<boolean> {
    if (this.#isGone || !this.#socket.writable) return false;
    if (this.#socket.write(text)) return true;
    const taken = await new Promise<boolean>((resolve) => {
      const done = (value: boolean): void => {
        clearTimeout(timer);
        this.#socket.off('drain', drained);
        this.#gone.signal.removeEventListener('abort', left);
        resolve(value);
      };
      const drained = (): void => done(true);
      const left = (): void => done(false);
      const timer = setTimeout(() => done(false), this.#limits.stalledMs);
      this.#socket.once('drain', drained);
      this.#gone.signal.addEventListener('abort', left, { once: true });
    });
    if (!taken) this.#socket.destroy();
    return taken;
  }

  /** It has sent its last line and has all its answers. */
  #finish(): void {
    if (this.#answering || this.#lines.length > 0) return;
    this.#socket.end();
  }

  #close(): void {
    if (this.#probe !== null) clearInterval(this.#probe);
    this.#lines.length = 0;
    this.#gone.abort();
    void this.#desk.released(this);
  }
}
