/**
 * What a page or a program may ask of the runtime beyond its state: each question once, for HTTP, IPC
 * and the command line alike. Its arguments are declared in ipc-schema.ts; these are the answers.
 * Times are epoch milliseconds, bytes are integers, and an unknown value is null.
 */
import type { LandlordEvent } from './events.ts';

/**
 * loaded   it is there already
 * now      it would get in as things stand
 * leaving  it would get in once the models of `leaving` have left
 * denied   it would be refused
 * unknown  its device or its size can not be told, so nobody can say
 */
export type PlanVerdict = 'loaded' | 'now' | 'leaving' | 'denied' | 'unknown';

export interface PlannedLeaver {
  readonly model: string;
  readonly bytes: number | null;
}

export interface PlannedContext {
  readonly tokens: number;
  readonly bytes: number;
  readonly verdict: 'now' | 'leaving' | 'denied';
  /** What it is set to now. */
  readonly present: boolean;
}

/** What a load would do, worked out without doing it. */
export interface LoadPlan {
  readonly model: string;
  readonly verdict: PlanVerdict;
  readonly deviceId: string | null;
  readonly needBytes: number | null;
  /** `measured before`, `your figure`, `estimate`, `weights only`; null: no figure. */
  readonly needFrom: string | null;
  readonly freeBytes: number | null;
  readonly floorBytes: number | null;
  readonly capBytes: number | null;
  readonly bookedBytes: number;
  readonly outstandingBytes: number;
  /** Who would leave for it, in that order; empty unless `verdict` is `leaving`. */
  readonly leaving: readonly PlannedLeaver[];
  /** Once all is done; null: not to be told. */
  readonly freeAfterBytes: number | null;
  /** Why it would be refused, in a sentence with figures; null otherwise. */
  readonly denial: string | null;
  /** What a load by force may bring, in sentences; empty where it would get in anyway. */
  readonly risks: readonly string[];
  /** A person asked that it be loaded anyway from now on. */
  readonly alwaysAnyway: boolean;
  /** Its size under other contexts, smallest first; empty where its file can't be read. */
  readonly contexts: readonly PlannedContext[];
}

/** One device's memory over time, in columns; a gap in the record is a column of nulls. */
export interface DeviceHistory {
  readonly deviceId: string;
  readonly atMs: readonly number[];
  readonly totalBytes: readonly (number | null)[];
  readonly usedBytes: readonly (number | null)[];
  readonly freeBytes: readonly (number | null)[];
  readonly gttUsedBytes: readonly (number | null)[];
  /** The largest first, what is left of them summed as `rest`. */
  readonly tenants: readonly {
    readonly id: string;
    readonly bytes: readonly (number | null)[];
  }[];
}

export interface FloorAdvice {
  readonly deviceId: string;
  /** The 95th percentile of what the desktop grew by within ten minutes; null: too little is recorded. */
  readonly suggestedBytes: number | null;
  readonly presentBytes: number | null;
  /** Hours of record it rests on. */
  readonly recordedHours: number;
  /** The key whose amount rules this device, as `changeSetting` takes it: `floor`, `devices.0.floor.keep`. */
  readonly floorKey: string;
  /** Other devices that a change of that key reaches as well. */
  readonly alsoFor: readonly string[];
}

export interface History {
  readonly fromMs: number;
  readonly toMs: number;
  /** A point stands for the fullest reading of this long. */
  readonly stepMs: number;
  readonly devices: readonly DeviceHistory[];
  /** Of that time, oldest first, the newest 500. */
  readonly events: readonly LandlordEvent[];
  readonly floors: readonly FloorAdvice[];
}

export type SettingKind = 'size' | 'duration' | 'number' | 'choice' | 'list' | 'mapping' | 'text';

/** A key inside a list's items or a mapping. */
export interface SettingPart {
  readonly key: string;
  /** Empty: its name says it. */
  readonly meaning: string;
  readonly choices: readonly string[];
  readonly defaultText: string | null;
}

export interface SettingEntry {
  /** Of the file's top level. */
  readonly key: string;
  readonly kind: SettingKind;
  /** What it means, in sentences. */
  readonly meaning: string;
  /** As one would write it; null: there is no fixed one, and `meaning` says what holds. */
  readonly defaultText: string | null;
  /** `bytes or a share`, `seconds, minutes, …`; null: it has none. */
  readonly unit: string | null;
  readonly choices: readonly string[];
  readonly parts: readonly SettingPart[];
  /** What stands in the file, as YAML; null: nothing does. */
  readonly yaml: string | null;
}

export interface SettingsView {
  readonly file: string;
  /** Names what stands in the file now, to be sent with a change; null: there is no file. */
  readonly fingerprint: string | null;
  /** Why the file that stands there is not in force; null: it is. */
  readonly rejection: string | null;
  readonly entries: readonly SettingEntry[];
  /** No config was ever written: the guide is of use. */
  readonly firstRun: boolean;
}

export interface SettingCheck {
  /** null: it may be written so. */
  readonly problem: string | null;
}

export interface ReplayLeaver {
  readonly model: string;
  readonly evictions: number;
  /** It was used again after it had been evicted. */
  readonly reloads: number;
}

/** What one policy would have done over recorded days. */
export interface ReplayRun {
  readonly floorBytes: number | null;
  readonly maxBig: 'fit' | number;
  readonly evictions: number;
  readonly reloads: number;
  /** Spells in which free memory stayed under the floor for longer than the guards wait. */
  readonly shortfalls: number;
  /** Time under the floor, and under half of it. */
  readonly underFloorMs: number;
  readonly underHardFloorMs: number;
  readonly models: readonly ReplayLeaver[];
}

export interface Replay {
  readonly deviceId: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Readings that were run again. */
  readonly readings: number;
  /** The settings of now over those days, and the ones that were asked for. */
  readonly present: ReplayRun;
  readonly asked: ReplayRun;
  /** What it rests on and leaves out, in sentences. */
  readonly notes: readonly string[];
}

/** What observing has seen so far: whether turning the guards on is worth asking. */
export interface Observation {
  /** Since when the guards have only observed; null: they act. */
  readonly sinceMs: number | null;
  /** Shortages of memory in which an idle model could have left. */
  readonly stalls: number;
  readonly models: readonly string[];
  /** No config was ever written: the guide is of use. */
  readonly firstRun: boolean;
}
