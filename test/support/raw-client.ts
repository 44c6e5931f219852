import { connect, type Socket } from 'node:net';

/** Sends bytes as they are, which no HTTP client would. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  #text = '';
  #over = false;
  #wake: (() => void)[] = [];

  /** A port of the loopback, or the path of a socket. Its own side stays open until it is disposed of. */
  constructor(where: number | string) {
    const options = typeof where === 'number' ? { host: '127.0.0.1', port: where } : { path: where };
    this.socket = connect({ ...options, allowHalfOpen: true });
    this.socket.on('data', (chunk: Buffer) => {
      // Only how it begins is looked at.
      if (this.#text.length < 64_000) this.#text += chunk.toString('latin1');
      this.#changed();
    });
    const end = (): void => {
      this.#over = true;
      this.#changed();
    };
    this.socket.on('end', end).on('close', end).on('error', end);
    this.socket.on('drain', () => this.#changed());
  }

  get text(): string {
    return this.#text;
  }

  get isOver(): boolean {
    return this.#over;
  }

  send(data: string | Uint8Array): boolean {
    return this.socket.writable && this.socket.write(data);
  }

  /** Resolves when the other side has closed, or `holds`; false when the limit was over first. */
  async until(holds: (text: string) => boolean, limitMs: number): Promise<boolean> {
    const untilMs = performance.now() + limitMs;
    while (!this.#over && !holds(this.#text)) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }

  /** Writes as fast as it is taken, until so many bytes are gone or the other side is. */
  async pour(chunk: Uint8Array, bytes: number): Promise<number> {
    let sent = 0;
    while (sent < bytes && !this.#over && this.socket.writable) {
      sent += chunk.length;
      if (this.socket.write(chunk)) continue;
      await new Promise<void>((resolve) => {
        this.#wake.push(resolve);
      });
    }
    return sent;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #changed(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
