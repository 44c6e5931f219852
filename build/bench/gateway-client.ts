import { Agent, errors, request } from 'undici';
import { MODEL, type Way } from './gateway-rig.ts';

const MOST_TRIES = 3;

/** One client for all ways: what it costs itself is the same for each. */
export function benchClient(): Agent {
  return new Agent({
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    // Servers here drop a quiet connection after 5 s; on a busy machine that moment is not seen in time.
    keepAliveTimeout: 1_500,
    keepAliveMaxTimeout: 1_500,
  });
}

export function chat(tokens: number, stream: boolean): string {
  return JSON.stringify({
    model: MODEL,
    messages: [{ role: 'user', content: 'abcdefgh' }],
    max_tokens: tokens,
    stream,
    // Random weights end a sentence at random.
    ignore_eos: true,
  });
}

export interface Answer {
  readonly text: string;
  /** From the request to the first byte of the body. */
  readonly firstByteMs: number;
  readonly totalMs: number;
}

/**
 * Tried again where the other side has closed the connection in between, as llama.cpp's router does with
 * several open; the time until the answer counts from the first try.
 */
export async function ask(
  client: Agent,
  way: Way,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const sentAtMs = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      return await askOnce(client, way, body, headers, sentAtMs);
    } catch (thrown) {
      if (!(thrown instanceof errors.SocketError) || tries === MOST_TRIES) throw thrown;
    }
  }
}

async function askOnce(
  client: Agent,
  { origin }: Way,
  body: string,
  headers: Readonly<Record<string, string>>,
  sentAtMs: number,
): Promise<Answer> {
  const answer = await request(`${origin}/v1/chat/completions`, {
    dispatcher: client,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-landlord-session': 'bench', ...headers },
    body,
  });
  const parts: Buffer[] = [];
  let firstByteMs = Number.NaN;
  for await (const part of answer.body) {
    if (parts.length === 0) firstByteMs = performance.now() - sentAtMs;
    parts.push(part);
  }
  const totalMs = performance.now() - sentAtMs;
  const text = Buffer.concat(parts).toString('utf8');
  if (answer.statusCode !== 200)
    throw new Error(`${origin} answered ${answer.statusCode}: ${text.slice(0, 200)}`);
  return { text, firstByteMs, totalMs };
}

/** In another order each time, so that what comes before whom is no advantage. */
export function inTurn<T>(ways: readonly T[], round: number): readonly T[] {
  const from = ((round % ways.length) + ways.length) % ways.length;
  const turned = [...ways.slice(from), ...ways.slice(0, from)];
  return round % 2 === 0 ? turned : turned.toReversed();
}
