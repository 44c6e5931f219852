/**
 * The shapes other programs read: `landlord status --json`, `GET /api/state`, the tray and the window.
 * Times are ISO 8601 strings, bytes are integers, and an unknown value is null.
 */

export const STATE_SCHEMA = 'vram-landlord/state/1';

export type DeviceKind = 'amdgpu' | 'nvidia' | 'intel' | 'nouveau' | 'unified' | 'system' | 'simulated';

/**
 * ok          nothing to say
 * threatened  free memory is under the floor, or falls to it within 10 s at the present rate
 * critical    free memory is under the hard floor, or the driver is moving VRAM into GTT
 * stale       the last good reading is older than 3 of its source's periods: no guard acts on it
 */
export type Health = 'ok' | 'threatened' | 'critical' | 'stale';

export interface DeviceState {
  /** `pci:0000:03:00.0`, `system`, or `sim:0`. Card numbers are not stable, PCI addresses are. */
  readonly id: string;
  readonly kind: DeviceKind;
  readonly name: string;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
  readonly gttUsedBytes: number | null;
  /** 0–100. */
  readonly busyPercent: number | null;
  readonly sampledAt: string | null;
  /** What was read: `amdgpu-sysfs`, `nvml`, `nvidia-smi`, `meminfo`, … */
  readonly source: string;
  readonly health: Health;
  readonly capBytes: number | null;
  readonly bookedBytes: number;
  readonly floorBytes: number | null;
  readonly hardFloorBytes: number | null;
  readonly outstandingBytes: number;
  /** Whether a monitor hangs on this device; null where that can't be told. */
  readonly drivesDisplay: boolean | null;
  /** True while the driver moves VRAM into GTT; null where the driver does not tell. */
  readonly evictionUnderWay: boolean | null;
  /** True where models and the system share one memory. */
  readonly unified: boolean;
  /** Plain sentences about this device: suspended, unified, failed reads. */
  readonly notes: readonly string[];
}

export type TenantKind = 'desktop' | 'model' | 'agent' | 'reserved' | 'foreign';

export interface TenantState {
  readonly id: string;
  readonly kind: TenantKind;
  readonly name: string;
  readonly deviceId: string;
  readonly predictedBytes: number | null;
  readonly measuredBytes: number | null;
  readonly pids: readonly number[];
  /** For the desktop: what it holds when nobody works at it and when somebody does, learned from its history; left out: not known yet. */
  readonly usual?: { readonly idleBytes: number; readonly busyBytes: number };
  /** For the desktop and foreign tenants: the largest holders, `firefox 0.8 GB`. */
  readonly parts?: readonly { readonly name: string; readonly bytes: number; readonly pid: number | null }[];
}

export type ModelStatus = 'unloaded' | 'loading' | 'loaded' | 'sleeping' | 'stopping' | 'failed';

export interface ModelState {
  /** `backend/model`. */
  readonly id: string;
  readonly backend: string;
  readonly status: ModelStatus;
  readonly busy: boolean | null;
  readonly big: boolean;
  readonly pinned: boolean;
  readonly batchOnly: boolean;
  readonly deviceId: string | null;
  readonly predictedBytes: number | null;
  readonly measuredBytes: number | null;
  readonly lastUsedAt: string | null;
  readonly pid: number | null;
  readonly port: number | null;
  /** `on`: the guards act on it; `observe`: they only say what they would do. */
  readonly guarded: 'on' | 'observe';
  readonly small: boolean;
  /** 0–1 while loading, where the backend tells. */
  readonly loadProgress: number | null;
  readonly contextTokens: number | null;
  /** When an idle rule would unload it if nothing changes; null when it stays until needed. */
  readonly leavesAt: string | null;
  /** Why it left the last time, in words, and when. */
  readonly lastEviction: {
    readonly at: string;
    readonly reason: string;
    readonly freedBytes: number | null;
  } | null;
  /** What it had read when it left, kept for its next load; left out: nothing. */
  readonly parked?: ParkedState;
}

/** Conversations of a model that wait in files until it is loaded again. */
export interface ParkedState {
  readonly conversations: number;
  readonly tokens: number;
  readonly bytes: number;
  /** When the oldest of them was parked. */
  readonly since: string;
}

export interface LaneHolderState {
  readonly pid: number | null;
  readonly command: string | null;
  readonly session: string | null;
  readonly model: string | null;
  readonly class: 'interactive' | 'batch' | null;
  readonly turn: string | null;
  readonly acquiredAt: string | null;
}

export interface LaneState {
  readonly backend: string;
  /** Whether the config sets `lanes` for this backend: its turns are meant to take the lane. */
  readonly configured: boolean;
  readonly path: string;
  readonly width: number;
  readonly held: boolean | null;
  readonly holders: readonly LaneHolderState[];
  readonly waiting: number;
}

export interface BackendState {
  readonly name: string;
  readonly kind: string;
  readonly url: string;
  readonly status: 'up' | 'down' | 'unknown';
  readonly since: string | null;
  readonly error: string | null;
  readonly version: string | null;
  readonly guards: 'on' | 'observe';
  /** True when it was found by itself and not named in the config. */
  readonly found: boolean;
  /** What it does not tell and what is odd about it, in sentences; left out: nothing. */
  readonly notes?: readonly string[];
  /** Its server's process, where VRAM Landlord runs it; left out: it does not. */
  readonly own?: OwnServerState;
}

/**
 * idle      waits for its first use
 * taken     something that is not ours listens on its port
 * waiting   it ended by itself and is started again
 */
export interface OwnServerState {
  readonly status: 'idle' | 'starting' | 'running' | 'waiting' | 'taken' | 'stopped';
  readonly pid: number | null;
  readonly startedAt: string | null;
  readonly nextStartAt: string | null;
  /** Since VRAM Landlord was started. */
  readonly restarts: number;
  /** Why it does not run, in a sentence. */
  readonly note: string | null;
  readonly logFile: string;
  /** Of its log, oldest first. */
  readonly lastLines: readonly string[];
}

export type GuardsMode = 'on' | 'observe' | 'paused';

export interface PolicyState {
  readonly guards: GuardsMode;
  /** When a pause ends; null unless paused. */
  readonly guardsPausedUntil: string | null;
  readonly floor: string;
  readonly cap: string;
  readonly maxBig: 'fit' | number;
  readonly race: 'class' | 'resident' | 'newcomer';
  readonly idleMs: number;
  readonly raceGraceMs: number;
}

export type KvPlace = 'device' | 'host' | 'file' | 'none';

/**
 * generating  an answer is being made for it now
 * waiting     it has asked, and waits for its turn, its lane or its memory
 * deflected   its last turn went elsewhere because the lane was in use
 * idle        nothing of it runs
 */
export type AgentActivity = 'generating' | 'waiting' | 'deflected' | 'idle';

/** Somebody who uses models: an agent registered with the embedded engine, or a caller the gateway knows by name. */
export interface AgentState {
  /** `engine/smol`, `gateway/writer`: unique in the list. */
  readonly id: string;
  /** One word for an agent of the engine; as the gateway names its callers otherwise. */
  readonly agent: string;
  readonly source: 'engine' | 'gateway';
  /** null: not known. */
  readonly class: 'interactive' | 'batch' | null;
  /** `backend/model`; for an agent of the engine `embedded/` and its file's name. null: none was named. */
  readonly model: string | null;
  /** null: it never reached one. */
  readonly backend: string | null;
  readonly state: AgentActivity;
  /** When `state` began; null: not known. */
  readonly since: string | null;
  /** Of the present answer, else of the last one; null: none was measured. */
  readonly tokensPerS: number | null;
  /** In its conversation (engine), or generated by its last answer (gateway); null: not told. */
  readonly tokens: number | null;
  /** Where its keys and values are; `none`: they are computed again when it is its turn. null: not ours to know (gateway). */
  readonly kv: KvPlace | null;
  /** Device bytes booked for it, its share of weights not among them; null: none are booked in its name. */
  readonly bookedBytes: number | null;
  /** Booked for the weights of its model, once for all agents that use it; 0: they are not loaded. null: not ours to know (gateway). */
  readonly weightsBytes: number | null;
  /** Share done of a load of its model that is under way, 0–1; null: none is. */
  readonly loadProgress: number | null;
  readonly deviceId: string | null;
  /** What it took to bring its context back before its last turn; 0: it was live. null: no turn yet, or not ours to know. */
  readonly lastSwitchMs: number | null;
  /** 1: next; null: it is not in a queue, or its place is not known. */
  readonly queuePosition: number | null;
  /** How long it has held its backend's lane; null: it holds none. */
  readonly laneAgeMs: number | null;
}

/** Something that only a person's click does: end a process, start a service anew. */
export interface OfferState {
  /** Stays the same while it stands. */
  readonly id: string;
  /** What is the matter, in a sentence or two. */
  readonly text: string;
  /** On the button. */
  readonly label: string;
  /** Asked before it is done. */
  readonly question: string;
}

/** Where a turn goes that can't be served here. */
export interface FallbackState {
  readonly name: string;
  readonly url: string;
  /** `ready`: nothing speaks against it, and it is not asked. */
  readonly status: 'ready' | 'down';
  readonly since: string | null;
  readonly error: string | null;
}

export interface LandlordState {
  readonly schema: typeof STATE_SCHEMA;
  /** Counts up by at least one with each change; an older one is to be dropped. */
  readonly revision: number;
  readonly at: string;
  readonly devices: readonly DeviceState[];
  readonly tenants: readonly TenantState[];
  readonly models: readonly ModelState[];
  readonly lanes: readonly LaneState[];
  /** Those of the engine first, by name. */
  readonly agents: readonly AgentState[];
  readonly asleep: null | { readonly since: string; readonly until: string | null };
  readonly policy: PolicyState;
  readonly backends: readonly BackendState[];
  /** What a person should know first, worst first: an unreadable card, a rejected config. */
  readonly notices: readonly { readonly severity: 'info' | 'warning' | 'error'; readonly text: string }[];
  /** Models that were evicted or made room and that `restore` would load again. */
  readonly restorable: readonly string[];
  /** In their order; left out: none is set. */
  readonly fallbacks?: readonly FallbackState[];
  /** Left out: none. */
  readonly offers?: readonly OfferState[];
  readonly version: string;
}
