import type { NewEvent } from '../../../shared/events.ts';
import type { LaneState } from '../../../shared/state.ts';
import { type BypassReading, type LocalClient, laneBypassed } from '../gate/lane-bypassed.ts';
import { type LaneFinding, laneStuck } from '../gate/lane-stuck.ts';
import type { LaneWatch } from '../gate/lane-watch.ts';
import { localClients } from '../gate/local-clients.ts';
import type { Fleet } from './fleet.ts';
import { laneWatchAside } from './lane-watch-aside.ts';
import type { ModelView } from './model-view.ts';
import type { Sight } from './sight.ts';

/**
 * Lanes are read this often, with every second reading of the devices: a turn lasts seconds, and the kernel's
 * table is one small file.
 */
const LOOK_MS = 900;
/** Readings older than this serve no finding. */
const HISTORY_MS = 120_000;

interface BusyReading {
  readonly atMs: number;
  readonly busyPercent: number | null;
}

export interface LaneLook {
  readonly fleet: Fleet;
  readonly views: readonly ModelView[];
  readonly sight: Sight;
  readonly nowMs: number;
}

/** Who holds which lane, and what is odd about it: held long with an idle device, or gone round. */
export class LaneBook {
  readonly #watch: LaneWatch;
  readonly #clientsOf: (port: number) => readonly LocalClient[];
  readonly #busy = new Map<string, readonly BusyReading[]>();
  readonly #bypass = new Map<string, readonly BypassReading[]>();
  /** Backends that are used outside their lane now, by the key of what was told. */
  readonly #bypassed = new Map<string, string>();
  /** Backends that have answered through our gateway since the last look. */
  readonly #served = new Set<string>();
  #told = new Set<string>();
  #lanes: readonly LaneState[] = [];
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    watch: LaneWatch = laneWatchAside(),
    clientsOf: (port: number) => readonly LocalClient[] = (port) =>
      localClients(port, new Set([process.pid])),
  ) {
    this.#watch = watch;
    this.#clientsOf = clientsOf;
  }

  list(): readonly LaneState[] {
    return this.#lanes;
  }

  /**
   * A request that came through our gateway is over there. It took the lane if it generates, for too short a
   * time to be seen, or needs none.
   */
  served(backend: string): void {
    this.#served.add(backend);
  }

  /** Takes no lane. Returns what is to be told, each once. */
  look(input: LaneLook): readonly NewEvent[] {
    const { fleet, views, sight, nowMs } = input;
    if (nowMs - this.#lookedAtMs < LOOK_MS) return [];
    this.#lookedAtMs = nowMs;
    const settings = fleet.settings();
    const watched = this.#watch.read(settings, nowMs);
    this.#lanes = watched.map((lane) => lane.state);
    for (const { id, busyPercent } of sight.devices())
      keep(this.#busy, id, { atMs: nowMs, busyPercent }, nowMs);

    const events: NewEvent[] = [];
    const standing = new Set<string>();
    for (const { state, heldSinceMs } of watched) {
      const mine = views.filter((view) => view.backend === state.backend);
      const deviceId = mine.find((view) => view.deviceId !== null)?.deviceId ?? null;
      const busyHistory = deviceId === null ? [] : (this.#busy.get(deviceId) ?? []);
      const stuck = laneStuck({ lane: state, heldSinceMs, nowMs, busyHistory });
      if (stuck !== null) this.#tell('lane_stuck', state.backend, stuck, standing, events);
      // Only where turns are meant to take the lane is one that does not worth a word.
      const setting = settings.find((one) => one.name === state.backend);
      if (setting?.lanes == null) continue;
      keep(
        this.#bypass,
        state.backend,
        {
          atMs: nowMs,
          backendBusy: busyOf(mine),
          laneHeld: this.#served.has(state.backend) ? true : anyHeld(state),
        },
        nowMs,
      );
      const readings = this.#bypass.get(state.backend) ?? [];
      const bypassed = laneBypassed(state.backend, readings, []);
      if (bypassed === null) {
        this.#bypassed.delete(state.backend);
        continue;
      }
      // The same until it ends, however far back the readings go.
      const key = this.#bypassed.get(state.backend) ?? bypassed.key;
      this.#bypassed.set(state.backend, key);
      // Who it is costs a walk over /proc: once a finding.
      const named = this.#told.has(key)
        ? bypassed
        : (laneBypassed(state.backend, readings, this.#clients(setting.url)) ?? bypassed);
      this.#tell('lane_bypassed', state.backend, { ...named, key }, standing, events);
    }
    this.#told = standing;
    this.#served.clear();
    return events;
  }

  #clients(url: string | null): readonly LocalClient[] {
    const port = url === null ? Number.NaN : Number(new URL(url).port);
    return Number.isInteger(port) && port > 0 ? this.#clientsOf(port) : [];
  }

  #tell(
    kind: 'lane_stuck' | 'lane_bypassed',
    backend: string,
    finding: LaneFinding,
    standing: Set<string>,
    events: NewEvent[],
  ): void {
    standing.add(finding.key);
    if (this.#told.has(finding.key)) return;
    events.push({
      kind,
      backend,
      reason: finding.reason,
      numbers: finding.numbers,
      ...(finding.session === null ? {} : { session: finding.session }),
    });
  }
}

/** `held` speaks of every slot of a wide lane; a single turn in it is one too. */
function anyHeld(lane: LaneState): boolean | null {
  return lane.holders.length > 0 ? true : lane.held;
}

/** Whether a backend generates: unknown unless every loaded model of it tells. */
function busyOf(views: readonly ModelView[]): boolean | null {
  const loaded = views.filter((view) => view.status === 'loaded');
  if (loaded.some((view) => view.observed.busy === true)) return true;
  return loaded.some((view) => view.observed.busy === null) ? null : false;
}

function keep<T extends { readonly atMs: number }>(
  histories: Map<string, readonly T[]>,
  key: string,
  reading: T,
  nowMs: number,
): void {
  const kept = (histories.get(key) ?? []).filter((one) => nowMs - one.atMs <= HISTORY_MS);
  histories.set(key, [...kept, reading]);
}
