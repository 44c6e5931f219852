import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { BusyAnswer } from '../backend.ts';
import { field, type HttpAnswer, type HttpClient, httpClient, objectionTo, saidBy } from '../http.ts';
import type { Ask, Reading } from './dialect.ts';

/** A GET with its answer's JSON, or why there is none. */
export async function getJson(
  ask: Ask,
  path: string,
): Promise<
  { readonly ok: true; readonly json: unknown } | { readonly ok: false; readonly reading: BadReading }
> {
  const answer = await ask.http.get(path, { timeoutMs: ask.timeoutMs, signal: ask.signal });
  const reading = objection(answer, ask.http, path);
  if (reading !== null) return { ok: false, reading };
  return { ok: true, json: answer.kind === 'answer' ? answer.json : undefined };
}

export type BadReading = Extract<Reading, { ok: false }> & { readonly status: number | null };

export function objection(answer: HttpAnswer, http: HttpClient, path: string): BadReading | null {
  const message = objectionTo(answer, http.baseUrl, path);
  if (message === null) return null;
  if (answer.kind === 'answer') return { ok: false, message, reach: 'odd', status: answer.status };
  const reach = answer.reason === 'refused' ? 'gone' : answer.reason === 'timed_out' ? 'odd' : 'down';
  return { ok: false, message, reach, status: null };
}

export function odd(http: HttpClient, path: string, title: string): BadReading {
  return {
    ok: false,
    message: `${http.baseUrl}${path} does not answer as ${title} does: another program may have this port; correct the backend's url or kind.`,
    reach: 'odd',
    status: null,
  };
}

/** Whether an action was accepted. `refusal`: a body that says no with status 200. */
export function accepted(
  answer: HttpAnswer,
  http: HttpClient,
  path: string,
  refusal: (answer: HttpAnswer) => string | null = () => null,
): Result<void> {
  if (answer.kind === 'failed') {
    return fail(answer.reason === 'timed_out' ? 'timed_out' : 'backend_unreachable', answer.message);
  }
  if (answer.status === 404) {
    const said = saidBy(answer) ?? 'not found';
    return fail(
      'unknown_model',
      `${http.baseUrl}${path} answers with status 404 (${said}): see landlord models for what there is.`,
    );
  }
  if (answer.status < 200 || answer.status >= 300) {
    return fail(
      'backend_refused',
      objectionTo(answer, http.baseUrl, path) ?? `${http.baseUrl}${path} refused.`,
    );
  }
  const said = refusal(answer);
  return said === null ? ok(undefined) : fail('backend_refused', `${http.baseUrl} refused: ${said}.`);
}

/** An error in a body of status 200. */
export function errorIn(answer: HttpAnswer): string | null {
  return answer.kind === 'answer' && field(answer.json, 'error') !== undefined ? saidBy(answer) : null;
}

/**
 * Asks a llama-server that another server runs, at its own port, whether a slot works. That passes its
 * parent by, so that no timer of the parent's starts anew. null: it does not tell.
 */
export async function askSlots(ask: Ask, name: string, port: number): Promise<BusyAnswer | null> {
  const http = httpClient(`http://127.0.0.1:${port}`, null);
  try {
    const answer = await http.get('/slots', { timeoutMs: 1_500, signal: ask.signal });
    if (answer.kind === 'failed') {
      return answer.reason === 'timed_out'
        ? { busy: null, why: `the process of ${name} did not say within 1500 ms what it does` }
        : null;
    }
    if (!Array.isArray(answer.json)) return null;
    const working = answer.json.filter((slot) => field(slot, 'is_processing') === true).length;
    return working > 0
      ? { busy: true, detail: `${working} of ${answer.json.length} slots of ${name} work` }
      : { busy: false };
  } finally {
    http.close();
  }
}
