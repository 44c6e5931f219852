import { fail, ok } from '../../../../shared/errors.ts';
import { isProgram } from '../../process/programs.ts';
import { field } from '../http.ts';
import { positiveOf, textOf } from '../models-list.ts';
import { bytesOf, entriesOf, type ToldModel, UNTOLD, withoutDoubles } from '../told-model.ts';
import { accepted, errorIn, getJson, odd } from './answers.ts';
import type { Ask, Dialect } from './dialect.ts';

const LOAD_LIMIT_MS = 10 * 60_000;
const UNLOAD_LIMIT_MS = 60_000;
const V1 = '/api/v1/models';
const V0 = '/api/v0/models';

const CANNOT =
  'This LM Studio can only list its models over HTTP: update it to 0.4 or later, or use `lms load` and `lms unload`.';

const STATES: Readonly<Record<string, ToldModel['status']>> = {
  loaded: 'loaded',
  'not-loaded': 'unloaded',
  loading: 'loading',
  unloading: 'stopping',
};

/**
 * LM Studio's own REST API: `/api/v1` since 0.4.0, with loads and unloads by instance; `/api/v0` before it,
 * which only lists. The OpenAI list under `/v1` says nothing of what is loaded.
 */
export function lmStudioDialect(): Dialect {
  let isV1: boolean | null = null;

  const list = async (ask: Ask) => {
    if (isV1 !== false) {
      const answer = await getJson(ask, V1);
      const entries = answer.ok ? entriesOf(answer.json, 'models') : null;
      if (entries !== null) {
        isV1 = true;
        return { ok: true as const, models: entries.flatMap((entry) => toldV1(entry) ?? []) };
      }
      // Its older releases answer a path they do not know with 200 and an error.
      const isUnknown = answer.ok ? field(answer.json, 'error') !== undefined : answer.reading.status === 404;
      if (isV1 === true || !isUnknown) return answer.ok ? odd(ask.http, V1, 'LM Studio') : answer.reading;
    }
    const answer = await getJson(ask, V0);
    if (!answer.ok) return answer.reading;
    const entries = entriesOf(answer.json, 'data');
    const isOurs = entries?.length === 0 || entries?.some((entry) => textOf(field(entry, 'state')) !== null);
    if (entries === null || !isOurs) {
      return odd(ask.http, V0, 'LM Studio');
    }
    isV1 = false;
    return { ok: true as const, models: entries.flatMap((entry) => toldV0(entry) ?? []) };
  };

  return {
    kind: 'lmstudio',
    title: 'LM Studio',
    tellsLoading: true,
    isServer: (command) => isProgram(command, 'lm-studio', 'LM-Studio', 'lms', 'llmster'),
    cannot: CANNOT,
    noProcess: 'LM Studio does not tell which of its processes runs a model.',
    async identify(ask) {
      isV1 = null;
      const found = await list(ask);
      return found.ok ? ok({ version: null }) : fail('backend_refused', found.message);
    },
    async read(ask) {
      const found = await list(ask);
      return found.ok ? { ok: true, models: withoutDoubles(found.models) } : found;
    },
    events: null,
    async load(ask, model) {
      if (isV1 === false) return fail('not_supported', CANNOT);
      const limits = { timeoutMs: LOAD_LIMIT_MS, signal: ask.signal };
      const answer = await ask.http.post('/api/v1/models/load', { model: model.name }, limits);
      return accepted(answer, ask.http, '/api/v1/models/load', errorIn);
    },
    async unload(ask, model) {
      if (isV1 === false) return fail('not_supported', CANNOT);
      const path = '/api/v1/models/unload';
      if (model.instances.length === 0) {
        return fail(
          'not_supported',
          `LM Studio tells no instance of ${model.name} that could be unloaded: unload it in LM Studio, or with \`lms unload\`.`,
        );
      }
      for (const instance of model.instances) {
        const limits = { timeoutMs: UNLOAD_LIMIT_MS, signal: ask.signal };
        const answer = await ask.http.post(path, { instance_id: instance }, limits);
        const done = accepted(answer, ask.http, path, errorIn);
        // Gone before we asked is gone.
        if (!done.ok && done.error.code !== 'unknown_model') return done;
      }
      return ok(undefined);
    },
    confirmIdle: async () => null,
    notes: () => [
      'LM Studio does not tell whether a model works, nor which process runs it: until a person or the setting `assumeIdle` says otherwise its models count as busy.',
      'LM Studio tells no memory: a model counts by the size of its file until the device shows what it took.',
      ...(isV1 === false ? ['This LM Studio has no HTTP request for a load or an unload.'] : []),
    ],
    forget() {
      isV1 = null;
    },
  };
}

function toldV1(entry: unknown): ToldModel | null {
  const name = textOf(field(entry, 'key'));
  if (name === null) return null;
  const told = entriesOf(entry, 'loaded_instances');
  const loaded = told ?? [];
  const instances = loaded.flatMap((instance) => textOf(field(instance, 'id')) ?? []);
  const contexts = loaded.map((instance) => positiveOf(field(field(instance, 'config'), 'context_length')));
  const slots = positiveOf(field(field(loaded[0], 'config'), 'parallel'));
  // Several instances of one model each have a context of their own; the largest is told.
  const contextTokens = contexts.reduce(
    (most, tokens) => ((tokens ?? 0) > (most ?? 0) ? tokens : most),
    null,
  );
  const isLoaded = loaded.length > 0;
  return {
    ...UNTOLD,
    name,
    aliases: instances.filter((instance) => instance !== name),
    status: told === null ? 'unknown' : isLoaded ? 'loaded' : 'unloaded',
    statusText: told === null ? 'not told' : isLoaded ? 'loaded' : 'not loaded',
    args: isLoaded && contextTokens !== null ? argsOf(contextTokens, slots) : null,
    contextTokens,
    weightsBytes: bytesOf(field(entry, 'size_bytes')),
    instances,
    ...(instances.length === 0 && (isLoaded || told === null) ? { isFixed: true } : {}),
  };
}

function toldV0(entry: unknown): ToldModel | null {
  const name = textOf(field(entry, 'id'));
  if (name === null) return null;
  const statusText = textOf(field(entry, 'state')) ?? 'not told';
  const status = STATES[statusText] ?? 'unknown';
  const contextTokens = positiveOf(field(entry, 'loaded_context_length'));
  return {
    ...UNTOLD,
    name,
    status,
    statusText,
    args: contextTokens === null ? null : argsOf(contextTokens, null),
    contextTokens,
    instances: [name],
    isFixed: true,
  };
}

/** In llama-server's words, so that a measurement is kept for the context it was made with. */
function argsOf(contextTokens: number, slots: number | null): readonly string[] {
  const parallel = slots === null ? [] : ['--parallel', String(slots), '--kv-unified'];
  return ['lmstudio', '--ctx-size', String(contextTokens), ...parallel];
}
