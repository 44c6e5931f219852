import { formatBytes } from '../../../shared/format.ts';
import type { Decision, EvictionCause, GuardModel } from './world.ts';

/** The name without its backend, as people say it. */
export function shortName(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

export function names(models: readonly GuardModel[]): string {
  return models.map((model) => shortName(model.id)).join(', ');
}

type Numbers = Readonly<Record<string, number | null>>;

export function unload(
  model: GuardModel,
  cause: EvictionCause,
  why: string,
  numbers: Numbers,
  more: { readonly requireIdle?: boolean; readonly forModelId?: string } = {},
): Decision {
  return {
    type: 'unload',
    modelId: model.id,
    cause,
    requireIdle: more.requireIdle ?? true,
    reason: `Unloading ${shortName(model.id)}: ${why}.`,
    numbers: { modelBytes: model.bytes, ...numbers },
    guarded: model.guarded,
    forModelId: more.forModelId ?? null,
  };
}

export function kill(
  model: GuardModel,
  cause: 'race' | 'drain',
  why: string,
  numbers: Numbers,
  forModelId: string | null,
): Decision {
  return {
    type: 'kill',
    modelId: model.id,
    cause,
    reason: `Killing ${shortName(model.id)}: ${why}.`,
    numbers: { modelBytes: model.bytes, ...numbers },
    guarded: model.guarded,
    forModelId,
  };
}

/** `6.9 GB is free`, with what is about to be freed where there is any. */
export function freeClause(freeBytes: number | null, comingBytes: number): string {
  const free = `${formatBytes(freeBytes)} is free`;
  return comingBytes > 0 ? `${free} and ${formatBytes(comingBytes)} is being given back` : free;
}
