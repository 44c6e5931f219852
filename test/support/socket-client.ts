import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A client of the ledger socket that keeps all it is told. */
export class SocketClient implements Disposable {
  readonly socket: Socket;
  #text = '';
  #ended = false;
  #taken = 0;
  #wake: (() => void) | null = null;

  constructor(path: string) {
    this.socket = connect(path);
    this.socket.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
      this.#wake?.();
    });
    this.socket.on('close', () => {
      this.#ended = true;
      this.#wake?.();
    });
    this.socket.on('error', () => undefined);
  }

  send(text: string): void {
    this.socket.write(text);
  }

  /** The next line; null: there is none any more. */
  async line(): Promise<string | null> {
    for (;;) {
      const end = this.#text.indexOf('\n', this.#taken);
      if (end >= 0) {
        const line = this.#text.slice(this.#taken, end);
        this.#taken = end + 1;
        return line;
      }
      if (this.#ended) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async lines(count: number): Promise<string[]> {
    const lines: string[] = [];
    while (lines.length < count) {
      const line = await this.line();
      if (line === null) break;
      lines.push(line);
    }
    return lines;
  }

  /** One line asked, its first line of answer. */
  async ask(text: string): Promise<string | null> {
    this.send(`${text}\n`);
    return await this.line();
  }

  /** All that comes until the other side ends. */
  async rest(): Promise<string> {
    while (!this.#ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.#text.slice(this.#taken);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** Waits for a state, however long the machine takes. */
export async function eventually(isSo: () => boolean, what: string, limitMs = 20_000): Promise<void> {
  const untilMs = performance.now() + limitMs;
  while (!isSo()) {
    if (performance.now() > untilMs) throw new Error(`waited in vain for ${what}`);
    await delay(5);
  }
}
