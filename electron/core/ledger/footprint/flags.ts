/**
 * How a model is started, whatever starts it: what of it changes the footprint. null: not given, the
 * engine's default holds.
 */
export interface LoadFlags {
  readonly modelPath: string | null;
  readonly projectorPath: string | null;
  readonly draftPath: string | null;
  readonly adapterPaths: readonly string[];
  /** Of all slots together. null: what the model was trained for. */
  readonly contextTokens: number | null;
  /** Sequences at once. null: 4 that share one cache. */
  readonly slots: number | null;
  /** One cache for all slots; always so where the slots are llama-server's own choice. null: not given. */
  readonly unified: boolean | null;
  readonly batch: number;
  readonly ubatch: number;
  readonly cacheTypeK: string;
  readonly cacheTypeV: string;
  readonly flashAttention: 'on' | 'off' | 'auto';
  /** null: all. */
  readonly gpuLayers: number | null;
  /** Experts of the first so many layers stay in the host's memory. */
  readonly cpuExpertLayers: number;
  /** Of those that stay there, the ones in use are kept on the device too, up to so much (`--moe-cache-mib`). */
  readonly expertCacheBytes: number;
  /** Feed-forward weights of the first so many layers do. */
  readonly cpuFeedForwardLayers: number;
  readonly overrides: readonly TensorOverride[];
  /** Windowed layers keep the whole context (`--swa-full`, engines without a windowed cache). */
  readonly fullWindowCache: boolean;
  /** False: keys and values stay in the host's memory (`--no-kv-offload`). */
  readonly cacheOnDevice: boolean;
  readonly projectorOnDevice: boolean;
  /** Latent cache of ik_llama.cpp for files that do not ask for it (`-mla`). */
  readonly latentCache: boolean;
  /** Tokens drafted ahead by the model's own next-token layers; 0: none. */
  readonly nextTokenDraft: number;
  /** Tokens drafted ahead in a way that goes back on a state (`draft-mtp`, `draft-eagle3`, …); 0: none. */
  readonly rollbackTokens: number;
  /** For the draft model. null: as for the model itself. */
  readonly draft: {
    readonly cacheTypeK: string;
    readonly cacheTypeV: string;
    readonly gpuLayers: number | null;
    readonly ubatch: number | null;
    readonly cpuExpertLayers: number;
    readonly overrides: readonly TensorOverride[];
  };
  /** How many devices share the model, each with buffers of its own; 0: none is used. */
  readonly devices: number;
  /** The engine lessens what was not asked for until it fits (`--fit`). */
  readonly fit: boolean;
  /** What it leaves free of each device then (`--fit-target`). */
  readonly fitMarginBytes: number;
  /** Of llama.cpp, such as 11669; null: not known. */
  readonly build: number | null;
}

export interface TensorOverride {
  /** A regular expression for tensors' names. */
  readonly pattern: string;
  /** Where they go: `CPU`, `CUDA0`, … */
  readonly buffer: string;
}

/** What `--fit` leaves free on a device unless it is told otherwise. */
const FIT_MARGIN_BYTES = 1024 * 1_048_576;

/** llama-server's defaults (common/common.h). */
export const DEFAULT_FLAGS: LoadFlags = {
  modelPath: null,
  projectorPath: null,
  draftPath: null,
  adapterPaths: [],
  contextTokens: null,
  slots: null,
  unified: null,
  batch: 2048,
  ubatch: 512,
  cacheTypeK: 'f16',
  cacheTypeV: 'f16',
  flashAttention: 'auto',
  gpuLayers: null,
  cpuExpertLayers: 0,
  expertCacheBytes: 0,
  cpuFeedForwardLayers: 0,
  overrides: [],
  fullWindowCache: false,
  cacheOnDevice: true,
  projectorOnDevice: true,
  latentCache: false,
  nextTokenDraft: 0,
  rollbackTokens: 0,
  draft: {
    cacheTypeK: 'f16',
    cacheTypeV: 'f16',
    gpuLayers: null,
    ubatch: null,
    cpuExpertLayers: 0,
    overrides: [],
  },
  devices: 1,
  fit: true,
  fitMarginBytes: FIT_MARGIN_BYTES,
  build: null,
};

/**
 * The most that such a load takes of a device of so many bytes: llama-server lessens a context or a
 * number of layers that was not asked for until the rest stays free. null: nothing holds it back.
 */
export function fittedLimitBytes(flags: LoadFlags, deviceTotalBytes: number | null): number | null {
  if (deviceTotalBytes === null || !flags.fit) return null;
  if (flags.contextTokens !== null && flags.gpuLayers !== null) return null;
  return Math.max(0, deviceTotalBytes - flags.fitMarginBytes) * Math.max(1, flags.devices);
}

/** Slots that llama-server takes where none are asked for, all on one cache. */
export const AUTO_SLOTS = 4;

export interface Slots {
  readonly sequences: number;
  /** Caches side by side; 1: shared. */
  readonly streams: number;
}

/** Slots auto are 4 on one cache; asked for, each has its own unless told otherwise. */
export function slotsOf(flags: LoadFlags): Slots {
  const sequences = flags.slots ?? AUTO_SLOTS;
  const unified = flags.slots === null || flags.unified === true;
  return { sequences, streams: unified ? 1 : sequences };
}
