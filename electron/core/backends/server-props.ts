import { field } from './http.ts';
import { positiveOf, textOf } from './models-list.ts';

/** What `GET /props` of a llama-server or a router says of itself. */
export interface ServerProps {
  readonly role: 'router' | 'single';
  /** `b11669-Debian`. */
  readonly version: string | null;
  /** 11669; null: not told in a form we know. */
  readonly build: number | null;
  /** Of a single server; null: not told. */
  readonly isSleeping: boolean | null;
  readonly modelName: string | null;
  /** What the server calls it, where that is a path and the name is its last part. */
  readonly modelAlias: string | null;
  readonly modelPath: string | null;
  readonly contextTokens: number | null;
  readonly tellsMetrics: boolean | null;
}

/**
 * From this build on `GET /metrics` neither wakes a sleeping model nor resets a loaded one's sleep
 * timer (llama.cpp pull request 27376, first in b10519); before it did both (issues 20227, 23096).
 */
const FIRST_BUILD_WITH_PASSIVE_METRICS = 10_519;

/** Whether counters may be read on a cadence; a build that does not say which it is counts as old. */
export function hasPassiveMetrics(build: number | null): boolean {
  return build !== null && build >= FIRST_BUILD_WITH_PASSIVE_METRICS;
}

/** null: the body is no llama-server's. */
export function parseProps(body: unknown): ServerProps | null {
  const settings = field(body, 'default_generation_settings');
  const version = textOf(field(body, 'build_info'));
  const isRouter = field(body, 'role') === 'router';
  if (!isRouter && settings === undefined && version === null) return null;
  const sleeping = field(body, 'is_sleeping');
  const metrics = field(body, 'endpoint_metrics');
  const alias = textOf(field(body, 'model_alias'));
  const modelPath = textOf(field(body, 'model_path'));
  return {
    role: isRouter ? 'router' : 'single',
    version,
    build: buildOf(version),
    isSleeping: typeof sleeping === 'boolean' ? sleeping : null,
    modelName: nameOf(alias) ?? nameOf(modelPath),
    modelAlias: alias,
    modelPath: modelPath === 'none' ? null : modelPath,
    contextTokens: positiveOf(field(settings, 'n_ctx')),
    tellsMetrics: typeof metrics === 'boolean' ? metrics : null,
  };
}

/** `b11669-Debian`, `b(11669)-(abc)`, `0.7.0 (build 11669, commit abc)`, `11669 (abc)`. */
export function buildOf(version: string | null): number | null {
  if (version === null) return null;
  const match = /(?:^b\(?|\bbuild\s+|^)(\d{4,6})\b/.exec(version);
  return match?.[1] === undefined ? null : Number(match[1]);
}

/** A server started without --alias goes by its file's path; a person knows it by the file's name. */
function nameOf(alias: string | null): string | null {
  if (alias === null || alias === 'none') return null;
  if (!/[/\\]|\.gguf$/.test(alias)) return alias;
  const file = alias.split(/[/\\]/).at(-1) ?? alias;
  // A repository's name (`owner/model:Q4`) is no path.
  return /\.gguf$/.test(file) ? file.replace(/\.gguf$/, '') : alias;
}
