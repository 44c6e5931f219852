import { barePath } from './endpoints.ts';
import type { Exchange } from './exchange.ts';

/** Whoever only unloads says little more than which model. */
const LONGEST_BYTES = 4096;
/** As a number of seconds, or a duration of Go's: `0`, `"0s"`, `"0m"`. */
const NOTHING = /^[+-]?0+(?:\.0*)?(?:ns|us|µs|ms|s|m|h)?$/;

/**
 * Ollama's way to unload a model (its docs/api.md): a request for work with nothing to work on, and `keep_alive: 0`.
 * To have the model admitted for that would load it first, and others leave for it.
 */
export function isUnloadWish({ front, path, head }: Pick<Exchange, 'front' | 'path' | 'head'>): boolean {
  if (front?.kind !== 'ollama' || head?.whole !== true || head.bytes.length > LONGEST_BYTES) return false;
  const content = CONTENT[barePath(path)];
  if (content === undefined) return false;
  const body = bodyOf(head.bytes);
  if (body === null || !NOTHING.test(String(body.keep_alive))) return false;
  const said = body[content];
  return said === undefined || said === null || said === '' || (Array.isArray(said) && said.length === 0);
}

/** Which field of its body says what to work on. */
const CONTENT: Readonly<Record<string, string>> = { '/api/generate': 'prompt', '/api/chat': 'messages' };

function bodyOf(bytes: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof body === 'object' && body !== null ? { ...body } : null;
  } catch {
    return null;
  }
}
