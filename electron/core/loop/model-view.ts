import { byName, matchesName, type Settings } from '../../../shared/settings.ts';
import type { Operation } from '../actuators/operation.ts';
import type { BackendSnapshot, ObservedModel } from '../backends/backend.ts';
import type { DeviceSample, ProcessMemory } from '../devices/sample.ts';
import { isSteady, REST_MS, type Steady, steadier } from './at-rest.ts';

/** What the loop itself knows of a model between two looks at its backend. */
export interface ModelMemo {
  readonly predictedBytes: number | null;
  /** Where the prediction came from, in words: `measured before`, `your figure`, `estimate`, `weights only`. */
  readonly predictionSource: string | null;
  /** Settled difference of the device over its last load; used where the driver does not tell per process. */
  readonly settledBytes: number | null;
  /** The driver's free figure when its load began. */
  readonly freeAtLoadBytes: number | null;
  /** How long the driver's figure for its process has been what it is; null: no such figure in its status. */
  readonly steady: Steady | null;
  readonly lastEviction: {
    readonly atMs: number;
    readonly reason: string;
    readonly freedBytes: number | null;
  } | null;
}

export const EMPTY_MEMO: ModelMemo = {
  predictedBytes: null,
  predictionSource: null,
  settledBytes: null,
  freeAtLoadBytes: null,
  steady: null,
  lastEviction: null,
};

/** One model with everything the guards, the ledger and the window need of it. */
export interface ModelView {
  readonly id: string;
  readonly backend: string;
  /** As its backend says it; left out or null: not told. */
  readonly backendVersion?: string | null;
  readonly observed: ObservedModel;
  readonly status: ObservedModel['status'];
  readonly deviceId: string | null;
  readonly big: boolean;
  readonly small: boolean;
  readonly pinned: boolean;
  readonly batchOnly: boolean;
  readonly ttlMs: number | null;
  readonly predictedBytes: number | null;
  readonly measuredBytes: number | null;
  /** It has taken, or given back, what its status means: `measuredBytes` is all of it. */
  readonly atRest: boolean;
  readonly guarded: 'on' | 'observe';
  readonly operation: Operation | null;
  readonly memo: ModelMemo;
}

export interface ModelViewInput {
  readonly snapshot: BackendSnapshot;
  readonly model: ObservedModel;
  readonly settings: Settings;
  readonly memo: ModelMemo;
  readonly operation: Operation | null;
  /** A person's pin or unpin, which wins over the config; undefined: none. */
  readonly pinnedByPerson: boolean | undefined;
  readonly guarded: 'on' | 'observe';
  readonly deviceId: string | null;
  /** That device's free bytes by its last reading; null: unknown. */
  readonly freeBytes: number | null;
  /** Monotonic ms of that reading; null: there is none. */
  readonly freeAtMs: number | null;
  readonly processes: readonly ProcessMemory[];
  /** Monotonic ms at which `processes` were read; null: never. */
  readonly processesAtMs: number | null;
}

export function modelId(backend: string, name: string): string {
  return `${backend}/${name}`;
}

export function viewModel(input: ModelViewInput): ModelView {
  const { model, settings, memo } = input;
  const id = modelId(input.snapshot.name, model.name);
  const small = matchesName(settings.small, id);
  const leaving = input.operation !== null && input.operation.phase !== 'confirming';
  const measuredBytes = leaving && !holdsMemory(model.status) ? stillToCome(input) : measured(input);
  const listed = listedBytes(input);
  const steady = steadier(memo.steady, listed, input.processesAtMs, model.sinceMs);
  // Nothing better known: what its server claims, or else its weights alone.
  const predictedBytes = memo.predictedBytes ?? model.reportedBytes ?? model.weightsBytes ?? null;
  return {
    id,
    backend: input.snapshot.name,
    backendVersion: input.snapshot.version,
    observed: model,
    status: leaving ? 'stopping' : model.status,
    deviceId: input.deviceId,
    small,
    big: isBig(settings, id, small, measuredBytes ?? predictedBytes),
    pinned: input.pinnedByPerson ?? matchesName(settings.pinned, id),
    batchOnly: matchesName(settings.batchOnly, id),
    ttlMs: byName(settings.ttlMs, id) ?? null,
    predictedBytes,
    measuredBytes,
    atRest: listed === null ? isReadSince(input) : isSteady(steady),
    guarded: input.guarded,
    operation: input.operation,
    memo: steady === memo.steady ? memo : { ...memo, steady },
  };
}

/**
 * Its process is gone and its memory has not settled: what the readings do not show as free yet. A
 * driver may take a moment, and in that moment the bytes are neither the model's nor free; they are
 * counted as coming, or one more model would be evicted for them.
 */
function stillToCome({ operation, freeBytes }: ModelViewInput): number | null {
  if (operation === null || operation.heldBytes === null) return null;
  if (operation.freeBeforeBytes === null || freeBytes === null) return operation.heldBytes;
  const shown = Math.max(0, freeBytes - operation.freeBeforeBytes);
  return Math.max(0, operation.heldBytes - shown);
}

/** Whether a model in this status has, or may have, bytes on the device. */
export function holdsMemory(status: ObservedModel['status']): boolean {
  return status === 'loading' || status === 'loaded' || status === 'sleeping' || status === 'stopping';
}

/** Design §1: big = not on the allow-list, and footprint unknown or at least `big.atLeast`; or named. */
export function isBig(settings: Settings, id: string, small: boolean, bytes: number | null): boolean {
  if (small) return false;
  if ('names' in settings.big) return matchesName(settings.big.names, id);
  return bytes === null || bytes >= settings.big.atLeastBytes;
}

/**
 * Bytes by the driver's own per-process figure where it has one, else the settled difference of the
 * device over its load; never what its server claims, which is an estimate (59 GB told, 26.7 held). While it loads or sleeps the settled figure does not hold, so it is unknown.
 */
function measured(input: ModelViewInput): number | null {
  const { model, memo } = input;
  if (!holdsMemory(model.status)) return null;
  if (model.countedBytes != null) return model.countedBytes;
  const listed = listedBytes(input);
  if (listed !== null) return listed;
  if (model.status !== 'loaded') return null;
  return memo.settledBytes;
}

/** By the driver's list of processes, where that is what counts for it; null: no figure. */
function listedBytes({ model, deviceId, processes }: ModelViewInput): number | null {
  const identity = model.process;
  if (model.countedBytes != null || identity === null || deviceId === null) return null;
  const known = processes.filter(
    (use) => use.pid === identity.pid && use.deviceId === deviceId && use.bytes !== null,
  );
  return known.length === 0 ? null : known.reduce((sum, use) => sum + (use.bytes ?? 0), 0);
}

/**
 * Without a figure of its own: our engine's account is exact, and a difference is only taken of a device
 * at rest; else the device has at least been read a while after the load, so that its free figure shows it.
 */
function isReadSince({ model, memo, freeAtMs }: ModelViewInput): boolean {
  if (model.countedBytes != null || memo.settledBytes !== null || freeAtMs === null) return true;
  return freeAtMs >= model.sinceMs + REST_MS;
}

/**
 * The device a backend's models live on: set in the config, else where its process was seen, else
 * the machine's largest discrete card, else its only device. A model started with no GPU layers is
 * in system memory whatever the card.
 */
export function deviceOf(
  model: ObservedModel,
  configured: string | null,
  devices: readonly DeviceSample[],
  processes: readonly ProcessMemory[],
): string | null {
  if (configured !== null) return configured;
  if (devices.length === 0) return null;
  const identity = model.process;
  if (identity !== null) {
    const seen = processes
      .filter((use) => use.pid === identity.pid && (use.bytes ?? 0) > 0)
      .sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0))[0];
    if (seen !== undefined) return seen.deviceId;
  }
  if (runsOnCpu(model.args)) return devices.find((device) => device.memory !== 'discrete')?.id ?? null;
  const cards = devices.filter((device) => device.memory === 'discrete' || device.kind === 'simulated');
  const largest = [...cards].sort((a, b) => (b.totalBytes ?? 0) - (a.totalBytes ?? 0))[0];
  return largest?.id ?? onlyOne(devices);
}

function onlyOne(devices: readonly DeviceSample[]): string | null {
  const unified = devices.find((device) => device.memory === 'unified');
  return unified?.id ?? (devices.length === 1 ? (devices[0]?.id ?? null) : null);
}

const LAYER_FLAGS = new Set(['-ngl', '--gpu-layers', '--n-gpu-layers']);
const DEVICE_FLAGS = new Set(['-dev', '--device']);

/** llama.cpp flags (common/arg.cpp) that keep every layer off the GPU. */
export function runsOnCpu(args: readonly string[] | null): boolean {
  if (args === null) return false;
  return args.some((flag, index) => {
    const value = args[index + 1];
    return (LAYER_FLAGS.has(flag) && value === '0') || (DEVICE_FLAGS.has(flag) && value === 'none');
  });
}

export interface GuardsOverride {
  /** null: no choice for all, only for single backends. */
  readonly mode: 'on' | 'observe' | null;
  /** Epoch ms at which a pause ends; null: not paused. */
  readonly pausedUntilMs: number | null;
  readonly perBackend: Readonly<Record<string, 'on' | 'observe'>>;
}

/**
 * Whether the guards act on a backend's models. A person's choice for that backend wins, then a
 * person's choice for all, then the backend's own setting, then the config's, then: on for those
 * named in the config, observe for those found by themselves. A pause stops everything.
 */
export function guardsFor(
  backend: { readonly name: string; readonly guards: 'on' | 'observe' | null; readonly found: boolean },
  settings: Settings,
  override: GuardsOverride | null,
): 'on' | 'observe' {
  if (override !== null && override.pausedUntilMs !== null) return 'observe';
  const chosen = override?.perBackend[backend.name];
  if (chosen !== undefined) return chosen;
  if (override?.mode === 'observe') return 'observe';
  if (override?.mode === 'on') return 'on';
  return backend.guards ?? settings.guards ?? (backend.found ? 'observe' : 'on');
}
