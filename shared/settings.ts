/**
 * Settings as the program uses them, after the YAML of design §5.6 has been read and checked.
 * Sizes that depend on a card's total stay symbolic until a device is known: see `resolveSize`.
 */

/** An amount of memory: absolute bytes, or a share (0–1) of a device's total. */
export type Size = { readonly bytes: number } | { readonly share: number };

/** A model name: exact (`qwen-27b` or `router/qwen-27b`), or a pattern written `/…/`. */
export type NamePattern = { readonly exact: string } | { readonly pattern: string };

export interface FloorSettings {
  /** null: the built-in rule (12.5 % of total, at most 4 GB, at least 512 MiB). */
  readonly keep: Size | 'auto' | null;
  /** null: half of `keep`. */
  readonly hard: Size | null;
  /** `free`: this much stays free. `share`: the desktop's own present use counts towards it. */
  readonly mode: 'free' | 'share';
}

export type DeviceSetting =
  | {
      readonly kind: 'amdgpu';
      /** Left out: every card of this kind that no other entry names. */
      readonly path?: string;
      /** What its memory is, where the machine's own signs are wrong; left out: they decide. */
      readonly memory?: 'discrete' | 'unified';
      readonly floor?: FloorSettings;
    }
  | {
      readonly kind: 'nvidia';
      readonly smi?: string;
      /** As for amdgpu; it holds for every NVIDIA card. */
      readonly memory?: 'discrete' | 'unified';
      readonly floor?: FloorSettings;
    }
  | { readonly kind: 'system'; readonly floor?: FloorSettings }
  /** The demo's card and the tests': a JSON file that holds total, used and GTT bytes. */
  | { readonly kind: 'simulated'; readonly path: string; readonly floor?: FloorSettings };

export type BackendKind =
  | 'llama.cpp'
  | 'llama-swap'
  | 'ollama'
  | 'lmstudio'
  | 'lemonade'
  | 'embedded'
  | 'openai';

export interface BackendSetting {
  readonly name: string;
  readonly kind: BackendKind;
  /** Without a trailing slash or `/v1`; absent only for `embedded`. */
  readonly url: string | null;
  readonly lanes: number | null;
  readonly front: number | null;
  /** What shares one lane; left out: the backend has one. `device`: all backends that say so and name the same device. */
  readonly lane?: 'backend' | 'model' | 'device';
  readonly command: readonly string[] | null;
  readonly models: Readonly<Record<string, string>>;
  /** Device id its models live on; null: worked out from the machine. */
  readonly device: string | null;
  /** null: `on` for backends named in the config, `observe` for those found. */
  readonly guards: 'on' | 'observe' | null;
  readonly apiKeyEnv: string | null;
  /** A model of which nobody can tell whether it works counts as idle this long after its last sign of use; left out or null: as busy for ever. */
  readonly assumeIdleMs?: number | null;
  /** When a `command` is run: with the runtime, or with the first request for one of its models. Left out: now. */
  readonly start?: 'now' | 'use';
  /** True when discovered rather than configured. */
  readonly found: boolean;
}

export interface AgentSetting {
  readonly class: 'interactive' | 'batch';
  readonly onBusy: 'fallback' | 'wait' | 'reject';
}

export interface FallbackSetting {
  readonly name: string;
  readonly url: string;
  readonly apiKeyEnv: string | null;
  readonly models: Readonly<Record<string, string>>;
}

/** Which ComfyUI may be asked to free its memory without a question: all that are found, or those at these addresses. */
export type ComfySettings = 'found' | readonly string[];

/** `ask`: a person says so each time. */
export interface DrainSettings {
  readonly kill: 'ask' | 'always';
  readonly restart: 'ask' | 'always';
}

/** What waits in files for a model's next load. */
export interface ParkingSettings {
  /** Of all conversations together; 0: none is parked. */
  readonly limitBytes: number;
  readonly keepMs: number;
}

export const DEFAULT_PARKING: ParkingSettings = { limitBytes: 16_000_000_000, keepMs: 86_400_000 };

/** Agents of the embedded engine. */
export interface EngineSettings {
  /** Of an agent that asks for none of its own, where its model was trained for as many. */
  readonly contextTokens: number;
  /** For states that wait, of main memory. */
  readonly hostMemory: Size;
  /** For states that main memory has no room for; 0: their tokens are read again. */
  readonly filesBytes: number;
  /** Decodes at once; null: one on the CPU, four on a card. */
  readonly parallel: number | null;
  /** Generated in one turn while others wait. */
  readonly turnTokens: number;
}

export const DEFAULT_ENGINE: EngineSettings = {
  contextTokens: 4_096,
  hostMemory: { share: 1 / 8 },
  filesBytes: 8_000_000_000,
  parallel: null,
  turnTokens: 64,
};

export interface Settings {
  readonly floor: FloorSettings;
  readonly cap: Size;
  readonly idleMs: number;
  readonly raceGraceMs: number;
  /** null: by backend (on when named, observe when found). */
  readonly guards: 'on' | 'observe' | null;
  readonly maxBig: 'fit' | number;
  readonly race: 'class' | 'resident' | 'newcomer';
  readonly big: { readonly atLeastBytes: number } | { readonly names: readonly NamePattern[] };
  readonly small: readonly NamePattern[];
  readonly batchOnly: readonly NamePattern[];
  /** Model name → idle milliseconds after which it is unloaded, room or no room. */
  readonly ttlMs: Readonly<Record<string, number>>;
  readonly pinned: readonly NamePattern[];
  /** null: found by itself. */
  readonly devices: readonly DeviceSetting[] | null;
  /** null: looked for on the usual loopback ports. */
  readonly backends: readonly BackendSetting[] | null;
  /** Model name → bytes, an operator's figure. */
  readonly footprints: Readonly<Record<string, number>>;
  readonly fallbacks: readonly FallbackSetting[];
  readonly agents: Readonly<Record<string, AgentSetting>>;
  /** Whether the kernel's log is followed; left out: it is, where that is permitted. */
  readonly kernelLog?: 'on' | 'off';
  /** Whether processes whose server is gone are ended without a question; left out: never. */
  readonly orphans?: 'ask' | 'end';
  /** Left out: none without a question. */
  readonly comfyui?: ComfySettings;
  /** What a drain does by itself once a server does not let go; left out: it asks. */
  readonly drain?: DrainSettings;
  /** Left out: `DEFAULT_ENGINE`. */
  readonly engine?: EngineSettings;
  /** Left out: `DEFAULT_PARKING`. */
  readonly parking?: ParkingSettings;
  readonly server: {
    readonly port: number;
    readonly apiKeyEnv: string | null;
    /** Origins of pages that may use `/v1`, lower case; design: none unless listed. */
    readonly origins: readonly string[];
  };
}

const MIB = 1024 * 1024;

/** Bytes of a size on a device of `totalBytes`; null when a share meets an unknown total. */
export function resolveSize(size: Size, totalBytes: number | null): number | null {
  if ('bytes' in size) return size.bytes;
  return totalBytes === null ? null : Math.floor(size.share * totalBytes);
}

/** Less than this is no room for a desktop to breathe in (design §1). */
export const LEAST_FLOOR_BYTES = 512 * MIB;

function builtInFloor(totalBytes: number | null): number | null {
  if (totalBytes === null) return null;
  const share = Math.max(LEAST_FLOOR_BYTES, Math.min(4_000_000_000, Math.floor(totalBytes / 8)));
  // On a card of less than a gigabyte the least floor would be most of it.
  return Math.min(share, Math.floor(totalBytes / 2));
}

/** What a desktop may teach (a quarter, or 2 GB of a small card): a jump by more was a server's that nobody could name. */
function mostLearned(totalBytes: number | null): number {
  if (totalBytes === null) return Number.MAX_SAFE_INTEGER;
  return Math.min(Math.floor(totalBytes / 2), Math.max(2_000_000_000, Math.floor(totalBytes / 4)));
}

/** A floor that is all of the device can never be kept: it is a slip of the pen, and the built-in rule holds instead. */
export function isFloorTooHigh(floor: FloorSettings, totalBytes: number | null): boolean {
  if (floor.keep === null || floor.keep === 'auto' || totalBytes === null) return false;
  const bytes = resolveSize(floor.keep, totalBytes);
  return bytes !== null && bytes >= totalBytes;
}

/**
 * The floor of a device in bytes, as design §1 has it: 12.5 % of total, at most 4 GB, at least
 * 512 MiB; the hard floor is half of it unless set. `learnedBytes` is what `auto` uses once known.
 * With `mode: share` the amount is the desktop's whole share, so what it already uses
 * (`desktopBytes`; null: unknown, then nothing is taken off) need not be free as well.
 */
export function resolveFloor(
  floor: FloorSettings,
  totalBytes: number | null,
  learnedBytes: number | null,
  desktopBytes: number | null = null,
): { readonly floorBytes: number | null; readonly hardFloorBytes: number | null } {
  const builtIn = builtInFloor(totalBytes);
  const asked =
    floor.keep === null
      ? builtIn
      : floor.keep === 'auto'
        ? learnedBytes === null
          ? builtIn
          : Math.min(learnedBytes, mostLearned(totalBytes))
        : resolveSize(floor.keep, totalBytes);
  const whole = isFloorTooHigh(floor, totalBytes) ? builtIn : asked;
  const keep =
    whole !== null && floor.mode === 'share' && desktopBytes !== null
      ? Math.max(Math.min(whole, LEAST_FLOOR_BYTES), whole - desktopBytes)
      : whole;
  const hard = floor.hard === null ? null : resolveSize(floor.hard, totalBytes);
  const hardBytes = hard ?? (keep === null ? null : Math.floor(keep / 2));
  return {
    floorBytes: keep,
    hardFloorBytes: hardBytes === null || keep === null ? hardBytes : Math.min(hardBytes, keep),
  };
}

/** Whether a pattern names this model; `id` is `backend/model`. A pattern that does not compile matches nothing. */
export function matchesName(patterns: readonly NamePattern[], id: string): boolean {
  const slash = id.indexOf('/');
  const name = slash < 0 ? id : id.slice(slash + 1);
  return patterns.some((entry) => {
    if ('exact' in entry) return entry.exact === name || entry.exact === id;
    try {
      return new RegExp(entry.pattern).test(name);
    } catch {
      return false;
    }
  });
}

/** The value a record keyed by model name holds for this model: `backend/model` wins over `model`. */
export function byName<T>(record: Readonly<Record<string, T>>, id: string): T | undefined {
  if (Object.hasOwn(record, id)) return record[id];
  const name = id.slice(id.indexOf('/') + 1);
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
