import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;
const ENDS: Readonly<Record<string, RegExp>> = {
  DECODE: /^(END_RESPONSE$|ERR )/,
  LIST: /^OK end$/,
  HELP: /^OK end$/,
  STATUS: /^OK ledger_max_bytes/,
};
const ONE_LINE = /^/;

/** Asks the ledger socket a line at a time, as a person with `nc -U` would. */
export class LineClient implements Disposable {
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  #text = '';
  #closed = false;

  private constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
    socket.setEncoding('utf8').on('data', (part: string) => {
      this.#text += part;
    });
    socket.on('close', () => {
      this.#closed = true;
    });
    socket.on('error', () => undefined);
  }

  static async connect(path: string, signal: AbortSignal): Promise<LineClient> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', () => resolve());
      socket.once('error', reject);
    });
    return new LineClient(socket, signal);
  }

  /** The lines of the answer. Throws when the socket closes or the demo is ended. */
  async ask(line: string): Promise<readonly string[]> {
    this.#socket.write(`${line}\n`);
    const end = ENDS[line.split(' ')[0] ?? ''] ?? ONE_LINE;
    const lines: string[] = [];
    for (;;) {
      const next = await this.#line();
      lines.push(next);
      if (end.test(next) || (lines.length === 1 && next.startsWith('ERR'))) return lines;
    }
  }

  async until(condition: () => boolean, limitMs: number): Promise<void> {
    const untilMs = performance.now() + limitMs;
    while (!condition()) {
      if (this.#signal.aborted || performance.now() > untilMs)
        throw new Error('The card was not read in time.');
      await delay(POLL_MS);
    }
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf('\n');
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      if (this.#closed || this.#signal.aborted) throw new Error('The ledger socket was closed.');
      await delay(POLL_MS);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
