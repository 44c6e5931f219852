import { formatBytes, formatPercent } from '../../../shared/format.ts';
import type { Settings, Size } from '../../../shared/settings.ts';
import {
  type AgentState,
  type BackendState,
  type DeviceState,
  type LandlordState,
  type LaneState,
  type ModelState,
  type OwnServerState,
  type PolicyState,
  STATE_SCHEMA,
  type TenantState,
} from '../../../shared/state.ts';
import type { BackendSnapshot } from '../backends/backend.ts';
import { type DeviceSample, isStale } from '../devices/sample.ts';
import type { DeviceVerdict } from '../guards/world.ts';
import type { DeviceBook } from '../ledger/booking.ts';
import type { GuardsOverride, ModelView } from './model-view.ts';

/** Turns monotonic milliseconds into ISO 8601 by the offset of the two clocks at this moment. */
export type ToIso = (monotonicMs: number) => string;

export function isoClock(epochMs: number, monotonicMs: number): ToIso {
  return (atMs) => new Date(epochMs - (monotonicMs - atMs)).toISOString();
}

export function deviceState(
  sample: DeviceSample,
  book: DeviceBook,
  verdict: DeviceVerdict | null,
  evictionUnderWay: boolean | null,
  nowMs: number,
  iso: ToIso,
): DeviceState {
  const stale = isStale(sample, nowMs);
  return {
    id: sample.id,
    kind: sample.kind,
    name: sample.name,
    totalBytes: sample.totalBytes,
    usedBytes: sample.usedBytes,
    freeBytes: sample.freeBytes,
    gttUsedBytes: sample.gttUsedBytes,
    busyPercent: sample.busyPercent,
    sampledAt: iso(sample.takenAtMs),
    source: sample.source,
    health: stale ? 'stale' : (verdict?.health ?? 'ok'),
    capBytes: book.capBytes,
    bookedBytes: book.bookedBytes,
    floorBytes: book.floorBytes,
    hardFloorBytes: book.hardFloorBytes,
    outstandingBytes: book.outstandingBytes,
    drivesDisplay: sample.drivesDisplay,
    evictionUnderWay,
    unified: sample.memory !== 'discrete',
    notes: sample.error === null ? sample.notes : [sample.error, ...sample.notes],
  };
}

export function modelState(view: ModelView, leavesAtMs: number | null, iso: ToIso): ModelState {
  const { observed, memo } = view;
  // Its own server may let it go before any rule of ours does.
  const goesAtMs = earlier(leavesAtMs, observed.expiresAtMs ?? null);
  return {
    id: view.id,
    backend: view.backend,
    status: view.status,
    busy: observed.busy,
    big: view.big,
    pinned: view.pinned,
    batchOnly: view.batchOnly,
    deviceId: view.deviceId,
    predictedBytes: view.predictedBytes,
    measuredBytes: view.measuredBytes,
    lastUsedAt: observed.lastBusyAtMs === null ? null : iso(observed.lastBusyAtMs),
    pid: observed.process?.pid ?? null,
    port: observed.port,
    guarded: view.guarded,
    small: view.small,
    loadProgress: observed.loadProgress,
    contextTokens: observed.contextTokens,
    leavesAt: goesAtMs === null ? null : iso(goesAtMs),
    lastEviction:
      memo.lastEviction === null
        ? null
        : {
            at: new Date(memo.lastEviction.atMs).toISOString(),
            reason: memo.lastEviction.reason,
            freedBytes: memo.lastEviction.freedBytes,
          },
  };
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

export function backendState(
  snapshot: BackendSnapshot,
  guards: 'on' | 'observe',
  found: boolean,
  iso: ToIso,
): BackendState {
  return {
    name: snapshot.name,
    kind: snapshot.kind,
    url: snapshot.url,
    status: snapshot.status,
    since: snapshot.sinceMs === null ? null : iso(snapshot.sinceMs),
    error: snapshot.error,
    version: snapshot.version,
    guards,
    found,
    ...(snapshot.notes.length === 0 ? {} : { notes: snapshot.notes }),
    ...(snapshot.own === undefined ? {} : { own: ownState(snapshot.own, iso) }),
  };
}

function ownState(own: NonNullable<BackendSnapshot['own']>, iso: ToIso): OwnServerState {
  const { startedAtMs, nextStartAtMs, ...rest } = own;
  return {
    ...rest,
    startedAt: startedAtMs === null ? null : iso(startedAtMs),
    nextStartAt: nextStartAtMs === null ? null : iso(nextStartAtMs),
  };
}

/** `backends`: how each is really guarded; with none guarded the headline is that they are only watched. */
export function policyState(
  settings: Settings,
  override: GuardsOverride | null,
  backends: readonly Pick<BackendState, 'guards'>[],
): PolicyState {
  const onlyWatched = backends.length > 0 && backends.every((backend) => backend.guards === 'observe');
  const pausedUntilMs = override?.pausedUntilMs ?? null;
  return {
    guards:
      pausedUntilMs === null
        ? (override?.mode ?? settings.guards ?? (onlyWatched ? 'observe' : 'on'))
        : 'paused',
    guardsPausedUntil: pausedUntilMs === null ? null : new Date(pausedUntilMs).toISOString(),
    floor: settings.floor.keep === 'auto' ? 'auto' : sizeText(settings.floor.keep, '12.5 %, at most 4 GB'),
    cap: sizeText(settings.cap, '90 %'),
    maxBig: settings.maxBig,
    race: settings.race,
    idleMs: settings.idleMs,
    raceGraceMs: settings.raceGraceMs,
  };
}

function sizeText(size: Size | null, fallback: string): string {
  if (size === null) return fallback;
  return 'bytes' in size ? formatBytes(size.bytes) : formatPercent(size.share);
}

export interface StateInput {
  readonly revision: number;
  readonly at: string;
  readonly devices: readonly DeviceState[];
  readonly tenants: readonly TenantState[];
  readonly lanes: readonly LaneState[];
  readonly agents: readonly AgentState[];
  readonly models: readonly ModelState[];
  readonly backends: readonly BackendState[];
  readonly asleep: LandlordState['asleep'];
  readonly policy: PolicyState;
  readonly notices: LandlordState['notices'];
  readonly restorable: readonly string[];
  readonly version: string;
}

export function landlordState(input: StateInput): LandlordState {
  return { schema: STATE_SCHEMA, ...input };
}
