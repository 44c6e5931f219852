import type { EventStore } from '../events/event-store.ts';
import type { GuardsOverride } from './model-view.ts';
import { setSince, type WallOffset, wallOffset } from './wall-offset.ts';
import { movedBy } from './wall-watch.ts';

/** Big-model sleep; epoch milliseconds, so that it outlives a restart. See wall-watch.ts for clocks that are set. */
export interface Sleep {
  readonly sinceMs: number;
  /** null: until woken. */
  readonly untilMs: number | null;
}

/** What people have asked for and what must outlive a restart: pins, sleep, the guards' mode, what `restore` would load. */
export interface Wishes {
  readonly pins: Readonly<Record<string, boolean>>;
  readonly sleep: Sleep | null;
  readonly guards: GuardsOverride | null;
  readonly restorable: readonly string[];
  /** Models whose loads go ahead though they would be refused. */
  readonly loadAnyway: readonly string[];
}

export const NO_WISHES: Wishes = { pins: {}, sleep: null, guards: null, restorable: [], loadAnyway: [] };

/** The fact they are kept as. */
export const WISHES = 'wishes';

/**
 * Reads what an earlier run kept. Anything that is not of the right shape is left out, never guessed.
 * Where the clock was set meanwhile, dates have moved with it.
 */
export async function readWishes(
  store: Pick<EventStore, 'get'>,
  now: WallOffset | null = wallOffset(),
): Promise<Wishes> {
  return keptWishes(await store.get(WISHES), now);
}

function keptWishes(value: unknown, now: WallOffset | null): Wishes {
  const wishes = parseWishes(value);
  return { ...wishes, ...movedBy(isRecord(value) ? setSince(value.clock, now) : 0, wishes) };
}

/**
 * What an earlier run kept and this one has read late, with what was wished since: of one thing the later word
 * holds, and what nobody has spoken of since is as it was.
 */
export function withLateWishes(since: Wishes, value: unknown, now: WallOffset | null = wallOffset()): Wishes {
  const before = keptWishes(value, now);
  return {
    pins: { ...before.pins, ...since.pins },
    sleep: since.sleep ?? before.sleep,
    guards: since.guards ?? before.guards,
    restorable: [...new Set([...before.restorable, ...since.restorable])],
    loadAnyway: [...new Set([...before.loadAnyway, ...since.loadAnyway])],
  };
}

export function parseWishes(value: unknown): Wishes {
  if (!isRecord(value)) return NO_WISHES;
  return {
    pins: isRecord(value.pins) ? booleans(value.pins) : {},
    sleep: parseSleep(value.sleep),
    guards: parseGuards(value.guards),
    restorable: texts(value.restorable),
    loadAnyway: texts(value.loadAnyway),
  };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

/** Writes them down; a disk that takes nothing is told by the store itself. */
export class WishKeeper {
  readonly #store: Pick<EventStore, 'set'>;
  readonly #now: () => WallOffset | null;
  #kept: Promise<unknown> = Promise.resolve();

  constructor(store: Pick<EventStore, 'set'>, now: () => WallOffset | null = wallOffset) {
    this.#store = store;
    this.#now = now;
  }

  write(wishes: Wishes): void {
    this.#kept = this.#store.set(WISHES, { ...wishes, clock: this.#now() });
  }

  /** Resolves when the last of them is on disk: what is answered as done, a kill a moment later must not undo. */
  get kept(): Promise<unknown> {
    return this.#kept;
  }
}

function parseSleep(value: unknown): Sleep | null {
  if (!isRecord(value) || typeof value.sinceMs !== 'number') return null;
  return { sinceMs: value.sinceMs, untilMs: typeof value.untilMs === 'number' ? value.untilMs : null };
}

function parseGuards(value: unknown): GuardsOverride | null {
  if (!isRecord(value)) return null;
  const mode = value.mode;
  if (mode !== 'on' && mode !== 'observe' && mode !== null) return null;
  const perBackend: Record<string, 'on' | 'observe'> = {};
  if (isRecord(value.perBackend))
    for (const [name, chosen] of Object.entries(value.perBackend))
      if (chosen === 'on' || chosen === 'observe') perBackend[name] = chosen;
  return {
    mode,
    pausedUntilMs: typeof value.pausedUntilMs === 'number' ? value.pausedUntilMs : null,
    perBackend,
  };
}

function booleans(value: Readonly<Record<string, unknown>>): Record<string, boolean> {
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean'),
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
