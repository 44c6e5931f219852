import type { ModelStatus } from '../../../shared/state.ts';

/**
 * What the guards see: one snapshot, plain data, no clock. `decide(world, memory)` is pure, so that
 * every rule of design §4 can be tested from a table and replayed over recorded days.
 */
export interface GuardModel {
  /** `backend/model`. */
  readonly id: string;
  readonly backend: string;
  readonly deviceId: string | null;
  readonly status: ModelStatus;
  /** Monotonic ms since it is in `status`. */
  readonly statusSinceMs: number;
  /** null: unknown; counts as busy for every eviction. */
  readonly busy: boolean | null;
  /** Monotonic ms when its last request ended or it was last seen busy; null: not used since we watch. */
  readonly lastUsedAtMs: number | null;
  readonly big: boolean;
  readonly small: boolean;
  readonly pinned: boolean;
  readonly batchOnly: boolean;
  readonly ttlMs: number | null;
  /** Measured where known, else predicted, else null. */
  readonly bytes: number | null;
  /** Predicted footprint of one that is loading; null: unknown. */
  readonly predictedBytes: number | null;
  /** How much of a loading model the device already shows; null: can't be told. */
  readonly seenBytes: number | null;
  /** Monotonic ms of our own unload request that is still open; null: none. */
  readonly unloadRequestedAtMs: number | null;
  /** A signal could be sent: its process is proven and ours to signal. null: not looked yet. */
  readonly signalable: boolean | null;
  /** How long its server waits before it force-stops it; left out or null: not known. */
  readonly stopTimeoutMs?: number | null;
  /** Its server can't let it go on request: to choose it would free nothing. Left out: it can. */
  readonly isFixed?: boolean;
  /** Class of the turn it serves or was asked for by, where known. */
  readonly turnClass: 'interactive' | 'batch' | null;
  /** `observe`: decisions for it become `would_evict`. */
  readonly guarded: 'on' | 'observe';
}

export interface GuardDevice {
  readonly id: string;
  readonly unified: boolean;
  /** The last good reading is fresh; false: no destructive action on this device (rule 6). */
  readonly fresh: boolean;
  readonly totalBytes: number | null;
  readonly freeBytes: number | null;
  readonly floorBytes: number | null;
  readonly hardFloorBytes: number | null;
  readonly capBytes: number | null;
  readonly bookedBytes: number;
  readonly outstandingBytes: number;
  /** What agents of the engine are giving back already; left out: nothing. */
  readonly givingBytes?: number;
  /** GTT grows while VRAM is full; null: this driver does not tell. */
  readonly evictionUnderWay: boolean | null;
  /** Monotonic ms of the reading. */
  readonly sampledAtMs: number | null;
}

export interface GuardPolicy {
  readonly idleMs: number;
  readonly raceGraceMs: number;
  readonly maxBig: 'fit' | number;
  readonly race: 'class' | 'resident' | 'newcomer';
  /** A floor breach must last this long before anything leaves (default 5 s). */
  readonly breachMs: number;
  /** Not evicted twice within this time of a load unless the floor is broken (default 60 s). */
  readonly minResidencyMs: number;
}

export interface GuardWorld {
  readonly nowMs: number;
  readonly devices: readonly GuardDevice[];
  readonly models: readonly GuardModel[];
  readonly asleep: boolean;
  readonly policy: GuardPolicy;
  /** Monotonic ms of the last resume from suspend; samples and decisions before it do not count. */
  readonly resumedAtMs: number | null;
  /** Wanted free bytes on a device by a standing `make-room`; empty: none. */
  readonly wantedFree: readonly { readonly deviceId: string; readonly freeBytes: number }[];
  /** Everything is to leave (drain), save what is pinned when `sparePinned`. */
  readonly drain: null | {
    readonly sparePinned: boolean;
    /** A person has said that what does not leave may be ended; left out: yes. */
    readonly mayKill?: boolean;
  };
}

export type EvictionCause =
  | 'race'
  | 'max_big'
  | 'floor'
  | 'hard_floor'
  | 'sleep'
  | 'batch_only'
  | 'ttl'
  | 'make_room'
  | 'drain';

/**
 * unload     ask the backend to unload; `requireIdle` means: confirm with the backend first, and do
 *            nothing when it turns out busy
 * kill       the loser of a race is still there after the grace: signal its proven process
 */
export type Decision =
  | {
      readonly type: 'unload';
      readonly modelId: string;
      readonly cause: EvictionCause;
      readonly requireIdle: boolean;
      /** One sentence with the figures. */
      readonly reason: string;
      readonly numbers: Readonly<Record<string, number | null>>;
      readonly guarded: 'on' | 'observe';
      /** For a race: the model that needs the room. */
      readonly forModelId: string | null;
    }
  | {
      readonly type: 'kill';
      readonly modelId: string;
      readonly cause: 'race' | 'drain';
      readonly reason: string;
      readonly numbers: Readonly<Record<string, number | null>>;
      readonly guarded: 'on' | 'observe';
      readonly forModelId: string | null;
    };

/** Device conditions the loop turns into events, once per crossing. */
export interface DeviceVerdict {
  readonly deviceId: string;
  readonly health: 'ok' | 'threatened' | 'critical' | 'stale';
  /** Bytes by which free is short of the floor; 0 when it is not; null when unknown. */
  readonly shortBytes: number | null;
  /** Free memory falls at this rate, bytes per second; null when it does not fall or is unknown. */
  readonly fallingBytesPerS: number | null;
}

/** What the guards remember between calls: hysteresis, outcomes. Plain data, replaced by each call. */
export interface GuardMemory {
  /** Per device: since when free is under the floor (monotonic ms). */
  readonly breachSinceMs: Readonly<Record<string, number>>;
  /** Per device: recent (atMs, freeBytes), newest last, for the rate of fall. */
  readonly recentFree: Readonly<
    Record<string, readonly { readonly atMs: number; readonly freeBytes: number }[]>
  >;
  /** Per model: when it was last decided upon and why, so that the same is not said each tick. */
  readonly decided: Readonly<
    Record<
      string,
      {
        readonly atMs: number;
        readonly cause: EvictionCause;
        readonly type: 'unload' | 'kill';
        /** What it held then; null: unknown. */
        readonly bytes?: number | null;
        /** It was loading: the newcomer that lost a race. */
        readonly wasLoading?: boolean;
      }
    >
  >;
  /** Per model: evictions that gave nothing back; not repeated until something changes. */
  readonly freedNothing: Readonly<
    Record<string, { readonly atMs: number; readonly freeBytes: number | null }>
  >;
}

export interface GuardResult {
  readonly decisions: readonly Decision[];
  readonly verdicts: readonly DeviceVerdict[];
  readonly memory: GuardMemory;
}
