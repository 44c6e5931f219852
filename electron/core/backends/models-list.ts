import { fail, ok, type Result } from '../../../shared/errors.ts';
import { presetArgs } from '../ledger/footprint/other-flags.ts';
import { flagValue } from '../process/procfs-text.ts';
import { field } from './http.ts';

/**
 * What a llama.cpp router says of a model, in its words (tools/server/README.md, "status"). A model on
 * disk or on its way there holds no memory, so `downloading` and `downloaded` read as `unloaded`;
 * `unknown` is a word this version has not met.
 */
export type ReportedStatus = 'unloaded' | 'loading' | 'loaded' | 'sleeping' | 'unknown';

export interface ListedModel {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly status: ReportedStatus;
  /** The router's own word, for sentences. */
  readonly statusText: string;
  /** `failed` also marks presets never started and deliberate unloads: it is no crash by itself. */
  readonly failed: boolean;
  readonly exitCode: number | null;
  readonly args: readonly string[] | null;
  /** Its child's port; null while it has none (the list then shows 0 or the last one). */
  readonly port: number | null;
  readonly modelPath: string | null;
  readonly contextTokens: number | null;
  readonly stopTimeoutMs: number | null;
  /** Started with --metrics. */
  readonly tellsMetrics: boolean;
}

/** The router force-stops a busy child after this long unless its preset says otherwise (tools/server/server-models.cpp). */
export const DEFAULT_STOP_TIMEOUT_MS = 10_000;

/** The word for a state where the router has none. */
export const NOT_TOLD = 'not told';

export function reportedStatus(word: string): ReportedStatus {
  switch (word) {
    case 'unloaded':
    case 'loading':
    case 'loaded':
    case 'sleeping':
      return word;
    case 'downloading':
    case 'downloaded':
      return 'unloaded';
    default:
      return 'unknown';
  }
}

/**
 * Reads the body of `GET /models` of any router build: entries under `data`, `models` or bare; a status
 * that is an object, a word or missing. An entry without a name is passed over.
 */
export function parseModelsList(body: unknown): Result<readonly ListedModel[]> {
  const entries = [field(body, 'data'), field(body, 'models'), body].find((value) => Array.isArray(value));
  if (!Array.isArray(entries)) {
    return fail('backend_refused', 'The answer to GET /models holds no list of models.');
  }
  const models = new Map<string, ListedModel>();
  for (const entry of entries) {
    const model = parseModel(entry);
    if (model !== null && !models.has(model.name)) models.set(model.name, model);
  }
  if (models.size === 0 && entries.length > 0) {
    return fail(
      'backend_refused',
      'The answer to GET /models holds no list of models, but of something else.',
    );
  }
  return ok([...models.values()]);
}

function parseModel(entry: unknown): ListedModel | null {
  const name = textOf(field(entry, 'id')) ?? textOf(field(entry, 'name')) ?? textOf(field(entry, 'model'));
  if (name === null) return null;
  const status = field(entry, 'status');
  const statusText = textOf(field(status, 'value')) ?? textOf(status) ?? NOT_TOLD;
  const reported = reportedStatus(statusText);
  const preset = textOf(field(status, 'preset'));
  const args = argsOf(wordsOf(field(status, 'args')), preset);
  const flags = args ?? [];
  const port = Number(flagValue(flags, '--port') ?? 0);
  const meta = field(entry, 'meta');
  return {
    name,
    aliases: (wordsOf(field(entry, 'aliases')) ?? []).filter((alias) => alias !== name),
    status: reported,
    statusText,
    failed: field(status, 'failed') === true,
    exitCode: integerOf(field(status, 'exit_code')),
    args,
    port: reported !== 'unloaded' && Number.isInteger(port) && port > 0 && port < 65_536 ? port : null,
    modelPath: flagValue(flags, '--model', '-m') ?? textOf(field(entry, 'path')),
    contextTokens:
      positiveOf(field(meta, 'n_ctx')) ??
      positiveOf(field(entry, 'context_length')) ??
      positiveOf(Number(flagValue(flags, '--ctx-size', '-c') ?? 0)),
    stopTimeoutMs: stopTimeoutMs(preset),
    tellsMetrics: flags.includes('--metrics'),
  };
}

/** A build that shows no command line of what is not loaded shows the preset that it will be made from. */
function argsOf(args: readonly string[] | null, preset: string | null): readonly string[] | null {
  if (preset === null || (args !== null && args.length > 0)) return args;
  const words = presetArgs(preset);
  return words.length === 0 ? args : ['llama-server', ...words];
}

/** The preset is told as the text of its INI section; null where the build does not tell it. */
function stopTimeoutMs(preset: string | null): number | null {
  if (preset === null) return null;
  const match = /^\s*stop-timeout\s*=\s*(\d+)\s*$/m.exec(preset);
  return match?.[1] === undefined ? DEFAULT_STOP_TIMEOUT_MS : Number(match[1]) * 1000;
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

export function integerOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? value : null;
}

/** A router's placeholder says 0 where it does not know: 0 is unknown here. */
export function positiveOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null;
}

function wordsOf(value: unknown): readonly string[] | null {
  return Array.isArray(value) ? value.filter((word) => typeof word === 'string') : null;
}
