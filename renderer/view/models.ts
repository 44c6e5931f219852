/** The list of models: what each is doing and the one thing a person can do about it. Pure. */
import { formatPercent } from '../../shared/format.ts';
import type { BackendState, LandlordState, ModelState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { bytesText, epochMs, hostOf, shortName, tokensText } from './figures.ts';
import { shown } from './shown.ts';
import { toneOf } from './tones.ts';

export type ModelAction = 'load' | 'cancel' | 'unload';

export interface ModelRow {
  readonly id: string;
  readonly name: string;
  /** null when every model is on one backend. */
  readonly backend: string | null;
  readonly tone: string;
  readonly lamp: 'busy' | 'idle' | 'loading' | 'asleep' | 'off' | 'failed';
  readonly status: string;
  readonly facts: readonly string[];
  /** Epoch ms, to be shown as an age; null: never, or not to be told. */
  readonly lastUsedAtMs: number | null;
  readonly leavesAtMs: number | null;
  /** Loaded, and no idle rule would move it: it stays until its room is needed. */
  readonly stays: boolean;
  /** Why it was unloaded the last time; null while it is there, or when it never was. */
  readonly evicted: { readonly at: string; readonly reason: string } | null;
  readonly pinned: boolean;
  /** Unloading it may cut a request off: ask first. */
  readonly asksFirst: boolean;
  /** null while it is leaving: nothing can be done. */
  readonly action: ModelAction | null;
}

export interface FoundBackend {
  readonly name: string;
  readonly text: string;
}

export interface ModelsCard {
  readonly active: readonly ModelRow[];
  /** Not loaded, most recently used first. */
  readonly inactive: readonly ModelRow[];
  /** Found by themselves and only observed: offered to be guarded. */
  readonly found: readonly FoundBackend[];
  /** Backends that do not answer, in sentences. */
  readonly down: readonly string[];
  readonly empty: 'no-backend' | 'no-models' | null;
}

const words = strings.models;

const ORDER: Readonly<Record<ModelState['status'], number>> = {
  loading: 0,
  stopping: 1,
  loaded: 2,
  failed: 3,
  sleeping: 4,
  unloaded: 5,
};

export function modelsCard(state: LandlordState): ModelsCard {
  const tones = toneOf(state);
  const manyBackends = new Set(state.models.map((model) => model.backend)).size > 1;
  const rows = [...state.models].sort(compareModels).map((model) => modelRow(model, tones, manyBackends));
  const up = state.backends.filter((backend) => backend.status !== 'down');
  return {
    active: rows.filter((row) => row.lamp !== 'off'),
    inactive: rows.filter((row) => row.lamp === 'off'),
    found: up
      .filter((backend) => backend.found && backend.guards === 'observe' && backend.status === 'up')
      .map((backend) => ({
        name: backend.name,
        text: strings.backends.found(shown(backend.name), hostOf(backend.url)),
      })),
    down: state.backends.filter((backend) => backend.status === 'down').map(downText),
    empty: state.models.length > 0 ? null : up.length > 0 ? 'no-models' : 'no-backend',
  };
}

function downText(backend: BackendState): string {
  const text = strings.backends.down(shown(backend.name), hostOf(backend.url));
  return backend.error === null ? text : `${text} ${backend.error}`;
}

function compareModels(a: ModelState, b: ModelState): number {
  const byStatus = ORDER[a.status] - ORDER[b.status];
  if (byStatus !== 0) return byStatus;
  // Rows must not change places each time one is used: only what is not loaded goes by its last use.
  if (a.status === 'unloaded') {
    const byUse = (epochMs(b.lastUsedAt) ?? 0) - (epochMs(a.lastUsedAt) ?? 0);
    if (byUse !== 0) return byUse;
  }
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function modelRow(model: ModelState, tones: (id: string) => string, manyBackends: boolean): ModelRow {
  const resident = model.status === 'loaded' || model.status === 'sleeping';
  const busy = model.status === 'loaded' && model.busy === true;
  return {
    id: model.id,
    name: shortName(model.id),
    backend: manyBackends ? model.backend : null,
    tone: tones(model.id),
    lamp: lampOf(model),
    status: statusText(model),
    facts: factsOf(model),
    lastUsedAtMs: busy || model.status === 'loading' ? null : wholeSeconds(epochMs(model.lastUsedAt)),
    leavesAtMs: resident && !busy && !model.pinned ? wholeSeconds(epochMs(model.leavesAt)) : null,
    stays: resident && !busy && !model.pinned && model.leavesAt === null && model.guarded === 'on',
    evicted: resident || model.status === 'loading' ? null : evictedOf(model),
    pinned: model.pinned,
    asksFirst: busy,
    action: actionOf(model),
  };
}

/** The runtime works `leavesAt` out anew each time; its milliseconds would render every row again. */
function wholeSeconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms / 1000) * 1000;
}

function lampOf(model: ModelState): ModelRow['lamp'] {
  switch (model.status) {
    case 'unloaded':
      return 'off';
    case 'loading':
    case 'stopping':
      return 'loading';
    case 'sleeping':
      return 'asleep';
    case 'failed':
      return 'failed';
    case 'loaded':
      return model.busy === true ? 'busy' : 'idle';
  }
}

function statusText(model: ModelState): string {
  if (model.status === 'loading' && model.loadProgress !== null) {
    return words.loadingShare(formatPercent(model.loadProgress));
  }
  if (model.status === 'loaded') {
    if (model.busy === null) return words.status.unknownBusy;
    return model.busy ? words.status.busy : words.status.loaded;
  }
  return words.status[model.status];
}

/** Both where they differ as far as is written. */
function sizeText(measured: string, predictedBytes: number | null): string {
  if (predictedBytes === null) return words.measured(measured);
  const predicted = bytesText(predictedBytes);
  return predicted === measured ? words.measured(measured) : words.measuredOf(measured, predicted);
}

function evictedOf({ lastEviction }: ModelState): ModelRow['evicted'] {
  if (lastEviction === null) return null;
  const { at, reason, freedBytes } = lastEviction;
  // The event says it as it is done; here the name and the deed stand there already.
  const why = shown(reason).replace(/^Unloading [^:]+: (.)/, (_whole, first: string) => first.toUpperCase());
  return { at, reason: freedBytes === null ? why : why + words.evictedGave(bytesText(freedBytes)) };
}

function factsOf(model: ModelState): readonly string[] {
  const facts: string[] = [];
  if (model.measuredBytes !== null && model.status !== 'loading') {
    facts.push(sizeText(bytesText(model.measuredBytes), model.predictedBytes));
  } else if (model.predictedBytes !== null) facts.push(words.predicted(bytesText(model.predictedBytes)));
  else if (model.status !== 'failed') facts.push(words.sizeUnknown);
  if (model.contextTokens !== null) facts.push(words.context(tokensText(model.contextTokens)));
  if (model.pinned) facts.push(words.pinned);
  else if (model.small) facts.push(words.small);
  if (model.batchOnly) facts.push(words.batchOnly);
  if (model.parked !== undefined)
    facts.push(words.parked(model.parked.conversations, tokensText(model.parked.tokens)));
  if (model.guarded === 'observe' && model.status !== 'unloaded') facts.push(words.observed);
  return facts;
}

function actionOf(model: ModelState): ModelAction | null {
  switch (model.status) {
    case 'loading':
      return 'cancel';
    case 'loaded':
    case 'sleeping':
      return 'unload';
    case 'unloaded':
    case 'failed':
      return 'load';
    case 'stopping':
      return null;
  }
}
