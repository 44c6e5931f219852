import type { FallbackSetting, Settings } from '../../../shared/settings.ts';
import type { Gate } from '../gate/gate.ts';
import type { OnReport } from '../gate/reports.ts';
import type { TurnClass } from '../gate/sidecar.ts';
import type { GrantedTurn } from '../gate/turn.ts';
import { type ChainEntry, walkFallbacks } from '../gate/walk-fallbacks.ts';

export interface FallbackEntry extends ChainEntry {
  readonly setting: FallbackSetting;
  readonly url: string;
}

export interface FallbackTaken {
  readonly entry: FallbackEntry;
  readonly index: number;
  /** To be disposed in the outermost finally. */
  readonly turn: GrantedTurn;
  /** Names of those passed over because their own local backend is in use. */
  readonly passedOver: readonly string[];
}

/** The next entry of the chain that may be used now; null: none is left. */
export async function takeFallback(
  gate: Gate,
  settings: Settings,
  model: string | null,
  options: {
    readonly from: number;
    readonly session: string | null;
    readonly class: TurnClass;
    readonly signal: AbortSignal;
    readonly onReport: OnReport;
  },
): Promise<FallbackTaken | null> {
  const chain: readonly FallbackEntry[] = settings.fallbacks.map((setting) => ({
    setting,
    url: setting.url,
    model: fallbackModel(setting, model),
  }));
  const walk = await walkFallbacks(gate, chain, { ...options, reports: false });
  if (walk.kind !== 'granted') return null;
  return {
    entry: walk.entry,
    index: walk.index,
    turn: walk.turn,
    passedOver: walk.deflections.map(({ entry }) => entry.setting.name),
  };
}

/** What the entry calls the model that was asked for: its own name for it, `*`, or the same. */
export function fallbackModel(setting: FallbackSetting, model: string | null): string | null {
  if (model === null) return setting.models['*'] ?? null;
  const bare = model.slice(model.indexOf('/') + 1);
  for (const name of [model, bare, '*'])
    if (Object.hasOwn(setting.models, name)) return setting.models[name] ?? null;
  return bare;
}

/** The path at an upstream whose URL may end in `/v1` already. */
export function upstreamPath(url: string, path: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname } = new URL(url);
  const base = pathname.replace(/\/+$/, '');
  const rest = /\/v\d+$/.test(base) && path.startsWith('/v1/') ? path.slice('/v1'.length) : path;
  return { origin, path: `${base}${rest}` };
}
