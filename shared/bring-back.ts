/**
 * When what left for a game or a render is loaded again without being asked. Pure.
 *
 *   idle ──a model leaves──► watching ──somebody foreign grew──► taken ──they have let go, for a while──► restore
 *                              │  nobody did, in a quarter of an hour                 └─► idle
 *                              └─► idle (a person can still bring it back)
 */
import type { LandlordState, TenantState } from './state.ts';

type Baseline = Readonly<Record<string, { readonly bytes: number; readonly atMs: number }>>;

export interface BringBackMemory {
  /** What each foreign tenant held at its first sight within the window before; null: not looked yet. */
  readonly baseline: Baseline | null;
  readonly restorable: readonly string[];
  readonly watchingSinceMs: number | null;
  /** Who took the room, by tenant id, and the most each has held. */
  readonly takers: Readonly<Record<string, number>>;
  readonly goneSinceMs: number | null;
}

export const NO_BRING_BACK: BringBackMemory = {
  baseline: null,
  restorable: [],
  watchingSinceMs: null,
  takers: {},
  goneSinceMs: null,
};

/** Smaller growth is a browser's, not a game's. */
const TAKER_GREW_BYTES = 1_000_000_000;
/** A game may have been loading for this long before its growth made a model leave. */
const BEFORE_MS = 3 * 60_000;
/** After "make room" a person still has to start what it was made for. */
const AFTER_MS = 15 * 60_000;
/** A level change frees and takes again. */
const GONE_FOR_MS = 15_000;
/** It has let go when it holds less than this share of its most. */
const LET_GO_SHARE = 0.25;

export interface BringBackStep {
  readonly memory: BringBackMemory;
  readonly restore: boolean;
}

type Seen = Pick<LandlordState, 'tenants' | 'devices' | 'restorable' | 'asleep' | 'policy'>;

export function bringBackStep(memory: BringBackMemory, state: Seen, nowMs: number): BringBackStep {
  // An old reading says nothing of who has gone.
  if (state.devices.some((device) => device.health === 'stale')) return { memory, restore: false };
  const held = foreign(state.tenants);
  if (memory.baseline === null) {
    // Who was there when we came took the room from nobody we saw leave.
    const baseline = Object.fromEntries([...held].map(([id, bytes]) => [id, { bytes, atMs: nowMs }]));
    return { memory: { ...NO_BRING_BACK, baseline, restorable: state.restorable }, restore: false };
  }
  const left = state.restorable.some((id) => !memory.restorable.includes(id));
  const watchingSinceMs = state.restorable.length === 0 ? null : left ? nowMs : memory.watchingSinceMs;
  const baseline = nextBaseline(memory.baseline, held, nowMs, watchingSinceMs === null);
  const takers = watchingSinceMs === null ? {} : nextTakers(memory.takers, baseline, held);
  const next = { baseline, restorable: state.restorable, watchingSinceMs, takers };

  const ids = Object.keys(takers);
  if (watchingSinceMs === null || ids.length === 0) {
    const over = watchingSinceMs !== null && nowMs - watchingSinceMs > AFTER_MS;
    return {
      memory: { ...next, watchingSinceMs: over ? null : watchingSinceMs, goneSinceMs: null },
      restore: false,
    };
  }
  const gone = ids.every((id) => (held.get(id) ?? 0) < (takers[id] ?? 0) * LET_GO_SHARE);
  if (!gone) return { memory: { ...next, goneSinceMs: null }, restore: false };
  const goneSinceMs = memory.goneSinceMs ?? nowMs;
  const calm = state.devices.every((device) => device.health === 'ok');
  const may = calm && state.asleep === null && state.policy.guards === 'on';
  if (nowMs - goneSinceMs < GONE_FOR_MS || !may) return { memory: { ...next, goneSinceMs }, restore: false };
  // Asked for once: what is refused then waits for a person.
  return {
    memory: { ...next, watchingSinceMs: null, takers: {}, goneSinceMs: null },
    restore: true,
  };
}

function foreign(tenants: readonly TenantState[]): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const tenant of tenants) {
    if (tenant.kind !== 'foreign' || tenant.measuredBytes === null) continue;
    held.set(tenant.id, (held.get(tenant.id) ?? 0) + tenant.measuredBytes);
  }
  return held;
}

/** While nobody watches, the baseline follows; then it stands, and a newcomer began with nothing. */
function nextBaseline(
  before: Baseline,
  held: ReadonlyMap<string, number>,
  nowMs: number,
  follows: boolean,
): Baseline {
  const next: Record<string, { bytes: number; atMs: number }> = {};
  for (const [id, bytes] of held) {
    const known = before[id];
    if (known === undefined) next[id] = { bytes: 0, atMs: nowMs };
    else next[id] = follows && nowMs - known.atMs > BEFORE_MS ? { bytes, atMs: nowMs } : known;
  }
  return next;
}

function nextTakers(
  before: BringBackMemory['takers'],
  baseline: Baseline,
  held: ReadonlyMap<string, number>,
): BringBackMemory['takers'] {
  const next: Record<string, number> = { ...before };
  for (const [id, bytes] of held) {
    const grew = bytes - (baseline[id]?.bytes ?? 0) >= TAKER_GREW_BYTES;
    if (grew || next[id] !== undefined) next[id] = Math.max(next[id] ?? 0, bytes);
  }
  return next;
}
