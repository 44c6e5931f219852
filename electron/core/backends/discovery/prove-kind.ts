import type { BackendKind } from '../../../../shared/settings.ts';
import type { Clock } from '../../clock.ts';
import type { Ask } from '../dialects/dialect.ts';
import { type HttpFailure, httpClient, saidBy } from '../http.ts';
import { dialectFor } from '../make-backend.ts';
import { parseProps } from '../server-props.ts';

export interface ProvenKind {
  readonly kind: BackendKind;
  /** A llama.cpp router, as against a server of one model. */
  readonly isRouter: boolean;
  readonly version: string | null;
}

/** What listens at an address. `other`: it answers, as none of those we know. */
export type Found =
  | { readonly type: 'server'; readonly proven: ProvenKind }
  /** A llama-server that says only this until its model is loaded. */
  | { readonly type: 'loading' }
  | { readonly type: 'other'; readonly wantsKey: boolean }
  /** `nothing` listens; it did not answer in `time`; it hung up, or is out of `reach`. */
  | { readonly type: 'silent'; readonly why: 'nothing' | 'time' | 'reach' };

const SILENCE: Readonly<Partial<Record<HttpFailure['reason'], 'nothing' | 'time'>>> = {
  refused: 'nothing',
  timed_out: 'time',
};

/** llama-server's answer to all that it is asked meanwhile (seen of build 11669). */
const LOADING = 'Loading model';

/** Lemonade also answers as Ollama does, so it is asked first. */
const KINDS: readonly BackendKind[] = ['lemonade', 'llama-swap', 'ollama', 'lmstudio'];

/**
 * Tells what a server is by what it answers, never by its port. Everything asked is a reading that loads,
 * wakes and prolongs nothing; llama.cpp exempts `GET /props` from its timers.
 */
export async function proveKind(
  url: string,
  clock: Clock,
  timeoutMs: number,
  apiKey: string | null = null,
): Promise<Found> {
  const http = httpClient(url, apiKey);
  const ask: Ask = { http, timeoutMs, signal: AbortSignal.timeout(timeoutMs * 4) };
  try {
    const answer = await http.get('/props', { timeoutMs, maxBytes: 1 << 20 });
    if (answer.kind === 'failed') return { type: 'silent', why: SILENCE[answer.reason] ?? 'reach' };
    const props = answer.status === 200 ? parseProps(answer.json) : null;
    if (props !== null) {
      const isRouter = props.role === 'router';
      return { type: 'server', proven: { kind: 'llama.cpp', isRouter, version: props.version } };
    }
    if (answer.status === 503 && saidBy(answer) === LOADING) return { type: 'loading' };
    for (const kind of KINDS) {
      const identity = await dialectFor(kind, url, clock)?.identify(ask);
      if (identity?.ok === true) {
        return { type: 'server', proven: { kind, isRouter: false, version: identity.value.version } };
      }
    }
    return { type: 'other', wantsKey: answer.status === 401 || answer.status === 403 };
  } finally {
    http.close();
  }
}
