import type { EvictionCause } from '../guards/world.ts';
import type { ArmedSignal } from './reaper.ts';

/** Who wanted it: a guard, or a person through the tray, the window or the command line. */
export type UnloadCause = EvictionCause | 'person';

/**
 * One unload on its way, from the wish to the memory being back (rule 11).
 *
 *   confirming ─► requested ─► settling ─► (done)
 *       │            │  ▲
 *       │            ▼  │ refused
 *       │          killing ─► settling
 *       └─► (busy: dropped)
 */
export interface Operation {
  readonly modelId: string;
  readonly deviceId: string | null;
  readonly cause: UnloadCause;
  readonly reason: string;
  readonly numbers: Readonly<Record<string, number | null>>;
  readonly forModelId: string | null;
  readonly startedAtMs: number;
  readonly freeBeforeBytes: number | null;
  /** What the model held by itself when it was asked to go. */
  readonly heldBytes: number | null;
  phase: 'confirming' | 'requested' | 'killing' | 'settling';
  requestedAtMs: number | null;
  armed: ArmedSignal | null;
  signalable: boolean | null;
  /** Why it can't be signalled, in a sentence. */
  signalNote: string | null;
  killedAtMs: number | null;
  goneAtMs: number | null;
  lastFreeBytes: number | null;
  lastSampleAtMs: number | null;
  steadySamples: number;
  /** Another model loaded or left on the device meanwhile, so that its free figure speaks of more than this one. */
  disturbed: boolean;
  /** Told once that it does not go. */
  stuckTold: boolean;
}

export type Outcome =
  | {
      readonly type: 'left';
      readonly operation: Operation;
      readonly freedBytes: number | null;
      readonly tookMs: number;
      readonly killed: boolean;
    }
  | { readonly type: 'busy'; readonly operation: Operation; readonly detail: string }
  | { readonly type: 'failed'; readonly operation: Operation; readonly message: string }
  | { readonly type: 'stuck'; readonly operation: Operation; readonly waitedMs: number }
  | { readonly type: 'signal_refused'; readonly operation: Operation; readonly message: string };

/** Steady: three readings in a row move by less than this share of the total, or 32 MiB. */
const STEADY_SHARE = 0.002;
const STEADY_BYTES = 32 * 1024 * 1024;
const STEADY_SAMPLES = 2;

/** How long we wait for memory to settle once the process is gone; a race waits less, its room is needed now. */
export const SETTLE_LIMIT_MS = 10_000;

/** A driver may show memory as free this long after the process is gone; steady before that says nothing. */
const RELEASE_LAG_MS = 2_000;

export interface FreeReading {
  readonly freeBytes: number | null;
  readonly totalBytes: number | null;
  readonly sampledAtMs: number | null;
}

/**
 * Takes one more reading into account; true when memory has settled or the limit has passed. With
 * other loads in flight the total never rests: then the first reading that can show the process gone
 * is all there is to wait for.
 */
export function settled(operation: Operation, reading: FreeReading, nowMs: number): boolean {
  const goneAtMs = operation.goneAtMs;
  if (goneAtMs === null) return false;
  if (nowMs - goneAtMs > SETTLE_LIMIT_MS) return true;
  // In memory that nobody reads, there is nothing to wait for.
  if (operation.deviceId === null) return true;
  if (reading.sampledAtMs === null || reading.freeBytes === null) return false;
  if (reading.sampledAtMs <= goneAtMs || reading.sampledAtMs === operation.lastSampleAtMs) return false;
  if (operation.disturbed) return true;
  const { heldBytes, freeBeforeBytes } = operation;
  const notShown =
    heldBytes !== null && freeBeforeBytes !== null && reading.freeBytes - freeBeforeBytes < heldBytes / 2;
  if (notShown && nowMs - goneAtMs < RELEASE_LAG_MS) return false;
  const tolerance = Math.max(STEADY_BYTES, (reading.totalBytes ?? 0) * STEADY_SHARE);
  const moved =
    operation.lastFreeBytes === null
      ? Number.POSITIVE_INFINITY
      : Math.abs(reading.freeBytes - operation.lastFreeBytes);
  operation.steadySamples = moved <= tolerance ? operation.steadySamples + 1 : 0;
  operation.lastFreeBytes = reading.freeBytes;
  operation.lastSampleAtMs = reading.sampledAtMs;
  return operation.steadySamples >= STEADY_SAMPLES - 1;
}

/**
 * What came back. Another load on the same device moves the total meanwhile, so then only the
 * model's own figure can be told; unknown stays null.
 */
export function freedBytes(operation: Operation, reading: FreeReading): number | null {
  if (operation.disturbed) return operation.heldBytes;
  if (reading.freeBytes === null || operation.freeBeforeBytes === null) return operation.heldBytes;
  return Math.max(0, reading.freeBytes - operation.freeBeforeBytes);
}
