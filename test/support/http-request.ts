import http from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  readonly json: unknown;
}

/** One request with exactly these headers; `fetch` would not let a test forge Host or Origin. */
export function request(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, json: parse(text) });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

export interface StreamReader {
  readonly status: number;
  readonly frames: { readonly event: string | null; readonly id: string | null; readonly data: string }[];
  /** Resolves once `done` holds for the frames so far; checked as they come. */
  until(done: () => boolean): Promise<void>;
  /** Stops reading; the socket fills up. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens an event stream and collects its frames. */
export function openStream(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<StreamReader> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      const frames: { event: string | null; id: string | null; data: string }[] = [];
      const waiters = new Set<() => void>();
      let text = '';
      answer.setEncoding('utf8');
      answer.on('error', () => undefined);
      answer.on('data', (part: string) => {
        text += part;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const lines = text.slice(0, end).split('\n');
          text = text.slice(end + 2);
          const field = (name: string): string | null =>
            lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
          const data = field('data');
          if (data !== null) frames.push({ event: field('event'), id: field('id'), data });
        }
        for (const check of [...waiters]) check();
      });
      resolve({
        status: answer.statusCode ?? 0,
        frames,
        until: (done) =>
          new Promise((found) => {
            const check = (): void => {
              if (!done()) return;
              waiters.delete(check);
              found();
            };
            waiters.add(check);
            check();
          }),
        pause: () => void answer.pause(),
        resume: () => void answer.resume(),
        close: () => void outgoing.destroy(),
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
