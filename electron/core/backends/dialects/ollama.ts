import { fail, ok, type Result } from '../../../../shared/errors.ts';
import { chosenArgs, withinTrained } from '../../ledger/footprint/ollama-context.ts';
import { type OllamaOptions, ollamaFlags } from '../../ledger/footprint/other-flags.ts';
import { isProgram } from '../../process/programs.ts';
import { field } from '../http.ts';
import { positiveOf, textOf } from '../models-list.ts';
import { bytesOf, entriesOf, instantOf, type ToldModel, UNTOLD, withoutDoubles } from '../told-model.ts';
import { accepted, askSlots, errorIn, getJson, odd } from './answers.ts';
import type { Ask, Dialect } from './dialect.ts';

/** Reading it lists the manifests on disk. */
const TAGS_EVERY_MS = 30_000;
/** Each reads one file's header, once. */
const SHOWS_PER_READING = 3;
const LOAD_LIMIT_MS = 10 * 60_000;
/** Clocks of one machine, read a moment apart. */
const EXPIRY_SLACK_MS = 1_500;
/** Ten years. */
const NEVER_MS = 10 * 365 * 86_400_000;

/** What `POST /api/show` says of a model, which loads nothing. */
interface Shown {
  /** The weights' own blob: `…/blobs/sha256-…`. */
  readonly modelPath: string | null;
  readonly options: OllamaOptions;
  /** The context it was trained for; null: not told. */
  readonly trainedTokens: number | null;
}

interface Tagged {
  readonly name: string;
  readonly digest: string | null;
  readonly sizeBytes: number | null;
}

/**
 * Ollama (docs/api.md, server/sched.go): `GET /api/ps` for what is there, `GET /api/tags` for what there is.
 * Neither names a process or says whether a model works; a row that has its `expires_at` moved has served
 * a request, and one past it is on its way out, held by a request that still runs.
 */
export function ollamaDialect(
  ownPort: number | null,
  clock: { readonly epochMs: () => number; readonly monotonicMs: () => number },
): Dialect {
  const shown = new Map<string, Shown>();
  /** The context that each was last seen with: the next load asks for the same, as a rule. */
  const lastContexts = new Map<string, number>();
  let serverVersion: string | null = null;
  let tags: readonly Tagged[] = [];
  let tagsAtMs: number | null = null;

  const readTags = async (ask: Ask): Promise<void> => {
    if (tagsAtMs !== null && clock.monotonicMs() - tagsAtMs < TAGS_EVERY_MS) return;
    const list = await getJson(ask, '/api/tags');
    const entries = list.ok ? entriesOf(list.json, 'models') : null;
    if (entries === null) return;
    tagsAtMs = clock.monotonicMs();
    tags = entries.flatMap((entry) => tagged(entry) ?? []);
  };

  const readShown = async (ask: Ask, wanted: readonly Tagged[]): Promise<void> => {
    const unknown = wanted.filter((one) => !shown.has(keyOf(one))).slice(0, SHOWS_PER_READING);
    for (const one of unknown) {
      const answer = await ask.http.post('/api/show', { model: one.name }, { timeoutMs: ask.timeoutMs });
      // One that is not there will not be; one whose server is too busy to say is asked again.
      if (answer.kind === 'answer' && (answer.status === 200 || answer.status === 404)) {
        shown.set(keyOf(one), shownIn(answer.json));
      }
    }
  };

  const loadedModel = (entry: unknown): ToldModel | null => {
    const row = tagged(entry);
    if (row === null) return null;
    const about = shown.get(keyOf(row)) ?? shown.get(keyOf({ ...row, digest: null }));
    const expiresAt = textOf(field(entry, 'expires_at'));
    const expiresAtEpochMs = instantOf(expiresAt);
    const isOver =
      ownPort !== null && expiresAtEpochMs !== null && expiresAtEpochMs < clock.epochMs() - EXPIRY_SLACK_MS;
    const contextTokens = positiveOf(field(entry, 'context_length'));
    if (contextTokens !== null) lastContexts.set(row.name, contextTokens);
    const sizeBytes = bytesOf(field(entry, 'size'));
    const onCard = field(entry, 'size_vram');
    // Older servers leave it out where it is 0: all of the model is in the host's memory.
    const onCardBytes = onCard === undefined ? 0 : bytesOf(onCard);
    return {
      ...common(row, about, contextTokens, onCardBytes === 0),
      status: isOver ? 'stopping' : 'loaded',
      statusText: isOver ? 'past its time, held by a request' : 'loaded',
      usedMark: expiresAt,
      contextTokens,
      reportedBytes:
        sizeBytes === null
          ? null
          : onCardBytes === 0 || onCardBytes === null
            ? sizeBytes
            : Math.min(onCardBytes, sizeBytes),
      expiresAtEpochMs: isNever(expiresAtEpochMs, clock.epochMs()) ? null : expiresAtEpochMs,
    };
  };

  const common = (
    row: Tagged,
    about: Shown | undefined,
    contextTokens: number | null,
    isOnHost: boolean,
  ): ToldModel => {
    const context = contextTokens ?? lastContexts.get(row.name) ?? about?.options.num_ctx;
    const options = { ...about?.options, num_ctx: context };
    const trained = about?.trainedTokens ?? null;
    const modelPath = about?.modelPath ?? null;
    const blob = modelPath?.split(/[/\\]/).at(-1) ?? null;
    return {
      ...UNTOLD,
      name: row.name,
      aliases: row.name.endsWith(':latest') ? [row.name.slice(0, -':latest'.length)] : [],
      args: ollamaArgs(isOnHost ? { ...options, num_gpu: 0 } : options, serverVersion, trained),
      modelPath,
      weightsBytes: row.sizeBytes,
      query:
        ownPort === null || blob === null || blob === ''
          ? null
          : { port: 0, alias: null, routerPort: ownPort, ownerName: 'Ollama', modelFile: blob },
    };
  };

  return {
    kind: 'ollama',
    title: 'Ollama',
    // A row is there from the moment a load begins.
    tellsLoading: false,
    isServer: (command) => isProgram(command, 'ollama'),
    cannot: null,
    noProcess: 'Ollama names no process for it, and does not tell which file it was made from.',
    async identify(ask) {
      const version = await getJson(ask, '/api/version');
      if (!version.ok) return fail('backend_refused', version.reading.message);
      const ps = await getJson(ask, '/api/ps');
      if (!ps.ok) return fail('backend_refused', ps.reading.message);
      const text = textOf(field(version.json, 'version'));
      if (text === null || rowsOf(ps.json) === null) {
        return fail('backend_refused', odd(ask.http, '/api/ps', 'Ollama').message);
      }
      serverVersion = text;
      return ok({ version: text });
    },
    async read(ask) {
      const ps = await getJson(ask, '/api/ps');
      if (!ps.ok) return ps.reading;
      const rows = rowsOf(ps.json);
      if (rows === null) return odd(ask.http, '/api/ps', 'Ollama');
      await readTags(ask);
      const there = rows.flatMap((row) => tagged(row) ?? []);
      await readShown(ask, [...there, ...tags]);
      const loaded = rows.flatMap((row) => {
        const model = loadedModel(row);
        const tag = tags.find((one) => one.name === model?.name);
        // What a row calls its size is memory; what the list calls so is the file's.
        return model === null ? [] : [{ ...model, weightsBytes: tag?.sizeBytes ?? null }];
      });
      const others = tags.map((tag) => common(tag, shown.get(keyOf(tag)), null, false));
      return { ok: true, models: withoutDoubles([...loaded, ...others]) };
    },
    events: null,
    load: (ask, model) => loadOllama(ask, model.name),
    async unload(ask, model) {
      const body = { model: model.name, keep_alive: 0 };
      const answer = await ask.http.post('/api/generate', body, { timeoutMs: ask.timeoutMs });
      if (answer.kind === 'answer' && NO_GENERATE.test(answer.text)) {
        const embed = { model: model.name, input: [], keep_alive: 0 };
        return accepted(
          await ask.http.post('/api/embed', embed, { timeoutMs: ask.timeoutMs }),
          ask.http,
          '/api/embed',
          errorIn,
        );
      }
      return accepted(answer, ask.http, '/api/generate', errorIn);
    },
    async confirmIdle(ask, model, port) {
      return port === null ? null : await askSlots(ask, model.name, port);
    },
    notes: (models) => [
      'Ollama does not tell whether a model works: that is told by the process that runs it, where it can be proven.',
      'Ollama does not tell a model that is loading from one that is loaded, and its sizes are its own estimate.',
      ...(models.some((model) => model.status === 'stopping')
        ? [
            'A model past its time is still there: a request holds it, and its memory stays in use until that ends.',
          ]
        : []),
    ],
    forget() {
      tagsAtMs = null;
      tags = [];
      shown.clear();
    },
  };
}

const NO_GENERATE = /does not support generate/i;

/** An empty request loads a model and answers when it is there. */
async function loadOllama(ask: Ask, name: string): Promise<Result<void>> {
  const limits = { timeoutMs: LOAD_LIMIT_MS, signal: ask.signal };
  const answer = await ask.http.post('/api/generate', { model: name, stream: false }, limits);
  if (answer.kind === 'answer' && NO_GENERATE.test(answer.text)) {
    const embed = await ask.http.post('/api/embed', { model: name, input: [] }, limits);
    return accepted(embed, ask.http, '/api/embed', errorIn);
  }
  return accepted(answer, ask.http, '/api/generate', errorIn);
}

/** `keep_alive: -1` is told as a time some three centuries away. */
function isNever(expiresAtEpochMs: number | null, epochMs: number): boolean {
  return expiresAtEpochMs !== null && expiresAtEpochMs - epochMs > NEVER_MS;
}

/** Go writes an empty list as null. */
function rowsOf(body: unknown): readonly unknown[] | null {
  return field(body, 'models') === null ? [] : entriesOf(body, 'models');
}

/** null: no name, or a model of somebody else's machine, which holds nothing here. */
function tagged(entry: unknown): Tagged | null {
  const name = textOf(field(entry, 'name')) ?? textOf(field(entry, 'model'));
  if (name === null || textOf(field(entry, 'remote_host')) !== null) return null;
  return { name, digest: textOf(field(entry, 'digest')), sizeBytes: bytesOf(field(entry, 'size')) };
}

function keyOf(row: Tagged): string {
  return row.digest ?? row.name;
}

function shownIn(body: unknown): Shown {
  const modelfile = textOf(field(body, 'modelfile')) ?? '';
  const from = /^FROM\s+(\S*[/\\]\S*sha256[-:][0-9a-f]{64})\s*$/m.exec(modelfile)?.[1] ?? null;
  const parameters = textOf(field(body, 'parameters')) ?? '';
  const number = (name: string): number | undefined => {
    const match = new RegExp(`^${name}\\s+(-?\\d+)\\s*$`, 'm').exec(parameters);
    return match?.[1] === undefined ? undefined : Number(match[1]);
  };
  return {
    modelPath: from,
    options: {
      num_ctx: number('num_ctx'),
      num_batch: number('num_batch'),
      num_gpu: number('num_gpu'),
    },
    trainedTokens: trainedIn(field(body, 'model_info')),
  };
}

/** `llama.context_length` and its like: the architecture begins the key. */
function trainedIn(about: unknown): number | null {
  if (typeof about !== 'object' || about === null) return null;
  const own = textOf(field(about, 'general.architecture'));
  const key = Object.keys(about).find((name) =>
    own === null ? /^[^.]+\.context_length$/.test(name) : name === `${own}.context_length`,
  );
  return key === undefined ? null : positiveOf(field(about, key));
}

/**
 * The same load in llama-server's words, so that what it takes can be foretold and told apart from another.
 * A context that nobody set is left to whoever knows the device.
 */
export function ollamaArgs(
  options: OllamaOptions,
  version: string | null,
  trainedTokens: number | null,
): readonly string[] {
  const asked = options.num_ctx ?? null;
  const context =
    asked === null
      ? chosenArgs(version, trainedTokens)
      : ['--ctx-size', String(withinTrained(asked, trainedTokens))];
  const flags = ollamaFlags(options);
  return [
    'ollama',
    ...context,
    ...['--parallel', String(flags.slots ?? 1)],
    ...['--batch-size', String(flags.batch)],
    ...['--ubatch-size', String(flags.ubatch)],
    ...(flags.gpuLayers === null ? [] : ['--gpu-layers', String(flags.gpuLayers)]),
  ];
}
