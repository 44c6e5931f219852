import type { IncomingMessage } from 'node:http';
import { fail, isErrorCode, type LandlordError, ok, type Result } from '../../shared/errors.ts';
import { http } from '../core/node-http.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import { parseObject, readAnswer } from './runtime-client.ts';

export interface ReservationWish {
  readonly bytes: number;
  readonly device: string | null;
  readonly name: string;
}

/** Memory that is booked as long as this process keeps the connection. */
export interface HeldReservation {
  readonly id: string;
  /** Called once, with a sentence, when it ends without us. */
  onLost(listener: (why: string) => void): void;
  /** Closes the connection, which gives the memory back. */
  release(): void;
}

/**
 * Asks for memory and waits until it is booked or refused; making room for it may take a minute.
 * Errors: those of the runtime with their own codes, `no_runtime` where it goes away meanwhile.
 */
export function holdReservation(
  runtime: FoundRuntime,
  wish: ReservationWish,
): Promise<Result<HeldReservation>> {
  const body = JSON.stringify(wish);
  return new Promise((resolve) => {
    let released = false;
    let over: string | null = null;
    let told = false;
    let listener: ((why: string) => void) | null = null;
    const lost = (why: string): void => {
      over ??= why;
      resolve(fail('no_runtime', `The runtime at ${runtime.url} went away; \`landlord serve\` starts one.`));
      if (released || told || listener === null) return;
      told = true;
      listener(over);
    };
    const request = http.request(
      `${runtime.url}/api/reservations`,
      {
        method: 'POST',
        agent: false,
        headers: { authorization: `Bearer ${runtime.token}`, 'content-type': 'application/json' },
      },
      (answer) => {
        if (answer.statusCode !== 200) {
          void readRefusal(answer, runtime).then((error) => resolve({ ok: false, error }));
          return;
        }
        const held: HeldReservation = {
          get id() {
            return id;
          },
          onLost(given) {
            listener = given;
            if (over !== null) lost(over);
          },
          release() {
            released = true;
            request.destroy();
          },
        };
        let id = '';
        const onLine = (line: string): void => {
          const value = parseObject(line);
          if (typeof value?.id === 'string') {
            id = value.id;
            resolve(ok(held));
          }
          if (typeof value?.over === 'string') lost(value.over);
        };
        let rest = '';
        answer.setEncoding('utf8');
        answer.on('data', (part: string) => {
          const lines = (rest + part).split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) onLine(line);
        });
        answer.on('error', () => lost(WENT_AWAY));
        answer.on('close', () => lost(WENT_AWAY));
      },
    );
    request.on('error', () => lost(WENT_AWAY));
    request.end(body);
  });
}

const WENT_AWAY = 'VRAM Landlord went away.';

async function readRefusal(answer: IncomingMessage, runtime: FoundRuntime): Promise<LandlordError> {
  const parts: Buffer[] = [];
  try {
    for await (const part of answer) parts.push(Buffer.from(part));
  } catch {
    // What came before it broke off is all there is.
  }
  const body = Buffer.concat(parts);
  const read = readAnswer(answer.statusCode ?? 0, body, runtime);
  if (read.ok) return fail('internal', `The runtime at ${runtime.url} answered without a reservation.`).error;
  const error = parseObject(body.toString('utf8'))?.error;
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
  return isErrorCode(code) ? { ...read.error, code } : read.error;
}
