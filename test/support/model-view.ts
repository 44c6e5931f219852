import type { ObservedModel } from '../../electron/core/backends/backend.ts';
import { EMPTY_MEMO, type ModelView } from '../../electron/core/loop/model-view.ts';

export function observedModel(change: Partial<ObservedModel> = {}): ObservedModel {
  return {
    name: 'm',
    aliases: [],
    status: 'unloaded',
    busy: null,
    lastBusyAtMs: null,
    sinceMs: 0,
    args: null,
    modelPath: null,
    port: null,
    process: null,
    processNote: null,
    contextTokens: null,
    loadProgress: null,
    reportedBytes: null,
    stopTimeoutMs: null,
    failure: null,
    ...change,
  };
}

/** A model as the loop sees it; `name` and `aliases` are the server's. */
export function modelView(
  change: Partial<Omit<ModelView, 'id' | 'observed'>> & {
    readonly name?: string;
    readonly aliases?: readonly string[];
    readonly observed?: Partial<ObservedModel>;
  } = {},
): ModelView {
  const { name = 'm', aliases = [], observed = {}, ...rest } = change;
  const backend = rest.backend ?? 'router';
  const status = rest.status ?? observed.status ?? 'unloaded';
  return {
    id: `${backend}/${name}`,
    backend,
    observed: observedModel({ name, aliases, status, ...observed }),
    status,
    deviceId: 'sim:0',
    big: true,
    small: false,
    pinned: false,
    batchOnly: false,
    ttlMs: null,
    predictedBytes: null,
    measuredBytes: null,
    atRest: true,
    guarded: 'on',
    operation: null,
    memo: EMPTY_MEMO,
    ...rest,
  };
}
