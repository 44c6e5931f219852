import { fail, ok, type Result } from '../../../shared/errors.ts';
import { field, type HttpClient, httpClient, objectionTo } from './http.ts';
import { integerOf } from './models-list.ts';
import type { TrackedModel } from './router-state.ts';

/** One conversation's place in a llama-server (tools/server README, "/slots"). */
export interface Slot {
  readonly id: number;
  readonly isProcessing: boolean;
  /** Tokens it holds; null: this build does not tell. */
  readonly tokens: number | null;
}

/** Saving and bringing back what llama-server has read. Only asked of a loaded model: `/slots` wakes one that sleeps. */
export interface SlotKeeper {
  list(model: string, signal: AbortSignal): Promise<Result<readonly Slot[]>>;
  /** `file`: a bare name in its `--slot-save-path`. An answer counts as it is; whether anything was kept is the caller's to see. */
  save(
    model: string,
    slot: number,
    file: string,
    signal: AbortSignal,
  ): Promise<Result<{ readonly tokens: number; readonly bytes: number }>>;
  restore(
    model: string,
    slot: number,
    file: string,
    signal: AbortSignal,
  ): Promise<Result<{ readonly tokens: number }>>;
}

/** A long context on a slow disk takes a while; the caller's signal ends it sooner. */
const FILE_LIMIT_MS = 120_000;
const LIST_LIMIT_MS = 5_000;

export function routerSlots(context: {
  readonly http: HttpClient;
  readonly isSingle: () => boolean;
  readonly find: (model: string) => TrackedModel | null;
}): SlotKeeper {
  const { http } = context;
  const nameOf = (model: string): string => context.find(model)?.name ?? model;

  const act = async (
    model: string,
    slot: number,
    action: 'save' | 'restore',
    filename: string,
    signal: AbortSignal,
  ): Promise<Result<unknown>> => {
    const path = `/slots/${slot}?action=${action}`;
    // A router finds the child by the name in the body; a child itself ignores it.
    const body = context.isSingle() ? { filename } : { model: nameOf(model), filename };
    const answer = await http.post(path, body, { timeoutMs: FILE_LIMIT_MS, signal });
    const objection = objectionTo(answer, http.baseUrl, path);
    return objection === null && answer.kind === 'answer'
      ? ok(answer.json)
      : fail('backend_refused', objection ?? `${http.baseUrl} gave no answer.`);
  };

  return {
    async list(model, signal) {
      const query = context.isSingle() ? '' : `?model=${encodeURIComponent(nameOf(model))}&autoload=false`;
      const answer = await http.get(`/slots${query}`, { timeoutMs: LIST_LIMIT_MS, signal });
      const objection = objectionTo(answer, http.baseUrl, '/slots');
      if (objection !== null || answer.kind !== 'answer')
        return fail('backend_refused', objection ?? `${http.baseUrl} gave no answer.`);
      if (!Array.isArray(answer.json))
        return fail('backend_refused', `${model} does not tell its slots (started with --no-slots?).`);
      return ok(answer.json.flatMap(slotOf));
    },
    async save(model, slot, file, signal) {
      const answer = await act(model, slot, 'save', file, signal);
      if (!answer.ok) return answer;
      const tokens = integerOf(field(answer.value, 'n_saved'));
      const bytes = integerOf(field(answer.value, 'n_written'));
      return tokens === null || bytes === null
        ? fail('backend_refused', `${model} does not say how much of slot ${slot} it saved.`)
        : ok({ tokens, bytes });
    },
    async restore(model, slot, file, signal) {
      const answer = await act(model, slot, 'restore', file, signal);
      if (!answer.ok) return answer;
      const tokens = integerOf(field(answer.value, 'n_restored'));
      return tokens === null
        ? fail('backend_refused', `${model} does not say how much of slot ${slot} it brought back.`)
        : ok({ tokens });
    },
  };
}

/**
 * Of llama-servers that another server runs (llama-swap), each asked at its own port: no timer of their
 * parent's starts anew. `portOf`: null where there is none to be asked.
 */
export function childSlots(portOf: (model: string) => number | null): SlotKeeper {
  const at = async <T>(model: string, use: (slots: SlotKeeper) => Promise<Result<T>>): Promise<Result<T>> => {
    const port = portOf(model);
    if (port === null) return fail('not_supported', `${model} has no llama-server of its own to be asked.`);
    const http = httpClient(`http://127.0.0.1:${port}`, null);
    try {
      return await use(routerSlots({ http, isSingle: () => true, find: () => null }));
    } finally {
      http.close();
    }
  };
  return {
    list: (model, signal) => at(model, (slots) => slots.list(model, signal)),
    save: (model, slot, file, signal) => at(model, (slots) => slots.save(model, slot, file, signal)),
    restore: (model, slot, file, signal) => at(model, (slots) => slots.restore(model, slot, file, signal)),
  };
}

function slotOf(value: unknown): readonly Slot[] {
  const id = integerOf(field(value, 'id'));
  const isProcessing = field(value, 'is_processing');
  if (id === null || typeof isProcessing !== 'boolean') return [];
  return [{ id, isProcessing, tokens: integerOf(field(value, 'n_prompt_tokens')) }];
}
