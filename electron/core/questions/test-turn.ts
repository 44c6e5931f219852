import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { formatDuration } from '../../../shared/format.ts';
import type { Done } from '../../../shared/ipc-schema.ts';

/** A model may have to be read from disk first. */
const LIMIT_MS = 180_000;

/**
 * One short request to a model through our own gateway, so that the whole way is tried: route,
 * admission, lane, server. Errors: the gateway's own sentence under `backend_refused`; `backend_unreachable`.
 */
export async function testTurn(url: string | null, key: string | null, model: string): Promise<Result<Done>> {
  if (url === null) return fail('no_runtime', 'The gateway is not listening yet; try again in a moment.');
  const startedAtMs = performance.now();
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      signal: AbortSignal.timeout(LIMIT_MS),
      headers: {
        'content-type': 'application/json',
        'x-landlord-session': 'test turn',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        messages: [{ role: 'user', content: 'Say hello in three words.' }],
        max_tokens: 8,
      }),
    });
    const text = await answer.text();
    if (answer.ok) {
      const tookMs = performance.now() - startedAtMs;
      return ok({
        message: `${model} answered in ${formatDuration(tookMs)}.`,
        numbers: { tookMs: Math.round(tookMs) },
      });
    }
    return fail('backend_refused', reasonOf(text) ?? `The gateway answered ${answer.status}.`);
  } catch (error) {
    return fail('backend_unreachable', `No answer came (${messageOf(error)}).`);
  }
}

/** The sentence of an error in OpenAI's shape; null: it has another. */
function reasonOf(text: string): string | null {
  try {
    const body: unknown = JSON.parse(text);
    const error: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'error') : null;
    const message: unknown =
      typeof error === 'object' && error !== null ? Reflect.get(error, 'message') : null;
    return typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}
