import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { DeviceSample, ProcessMemory } from '../devices/sample.ts';
import { commandFlags } from '../ledger/footprint/command-flags.ts';
import { type ModelView, runsOnCpu } from './model-view.ts';

/** Servers give back and take a little in their first moments. */
const SETTLED_MS = 15_000;
/** A small one may well hide behind what the driver rounds. */
const LEAST_BYTES = 1_000_000_000;
/** Of what it takes in all. A part on the CPU by intent leaves more than this on the card. */
const MISSING_SHARE = 0.1;

/** Staging buffers and the table of words are in the host's memory with every model. */
const SPILLED_SHARE = 0.25;

/** No flag of it puts a part elsewhere. */
function isMeantWhole({ observed: { args } }: ModelView): boolean {
  if (args === null) return true;
  const { gpuLayers, overrides } = commandFlags(args);
  return (gpuLayers === null || gpuLayers >= ALL_LAYERS) && overrides.length === 0;
}

/** As people write all of them. */
const ALL_LAYERS = 99;

/** Whether so many bytes on its device are far from what such a model takes there. */
export function isMissing({ predictedBytes, observed }: ModelView, heldBytes: number): boolean {
  if (predictedBytes === null || predictedBytes < LEAST_BYTES || runsOnCpu(observed.args)) return false;
  return heldBytes < predictedBytes * MISSING_SHARE;
}

/** Layers that are not asked for by number are left out until a margin stays free, and up to a layer more than that. */
const LITTLE_FREE_BYTES = 1_073_741_824;
const LESSENED_SHARE = 0.9;

/**
 * Whether its server seems to have put some of its layers elsewhere for want of room (llama-server's `--fit`,
 * Ollama): that many were not asked for, it takes clearly less than predicted, and next to nothing is free.
 */
export function isLessened(
  { observed, predictedBytes }: ModelView,
  heldBytes: number,
  freeBytes: number | null,
): boolean {
  if (observed.args === null || predictedBytes === null || freeBytes === null) return false;
  const { contextTokens, gpuLayers, fit, fitMarginBytes } = commandFlags(observed.args);
  // Of a context that was not asked for it takes as much as there is room for.
  if (!fit || gpuLayers !== null || contextTokens === null) return false;
  return heldBytes < predictedBytes * LESSENED_SHARE && freeBytes < fitMarginBytes + LITTLE_FREE_BYTES;
}

/** Of a model that is meant to be whole on its card: what the card reaches over the bus; 0: none, or too few to tell. */
export function spilledBytes(
  view: ModelView,
  card: DeviceSample,
  processes: readonly ProcessMemory[],
): number {
  const pid = view.observed.process?.pid ?? null;
  if (card.memory !== 'discrete' || pid === null || !isMeantWhole(view)) return 0;
  const bytes = processes
    .filter((use) => use.pid === pid && use.deviceId === card.id)
    .reduce((sum, use) => sum + (use.gttBytes ?? 0), 0);
  return bytes >= Math.max(LEAST_BYTES, SPILLED_SHARE * (view.predictedBytes ?? 0)) ? bytes : 0;
}

/**
 * A model that should be on a card, is loaded, and is not there: its server fell back to the CPU (after a
 * suspend: ollama 10053) or took another GPU (ollama 16667). Without a word it would look like one that
 * takes nothing. null: it is there, or nobody can tell. Pure.
 */
export function offCardEvent(
  view: ModelView,
  card: DeviceSample | null,
  processes: readonly ProcessMemory[],
  nowMs: number,
): NewEvent | null {
  const { observed, predictedBytes, memo } = view;
  if (view.status !== 'loaded' || nowMs - observed.sinceMs < SETTLED_MS) return null;
  if (card === null || card.memory !== 'discrete' || card.error !== null) return null;
  if (predictedBytes === null) return null;
  const pid = observed.process?.pid ?? null;
  // A driver that tells of nobody there tells nothing of this one either.
  const isTold = processes.some((use) => use.deviceId === card.id && use.bytes !== null);
  if (pid === null || !isTold) return null;
  const mine = processes.filter((use) => use.pid === pid);
  if (mine.some((use) => use.bytes === null)) return null;
  const heldBytes = mine.reduce((sum, use) => sum + (use.bytes ?? 0), 0);
  const spilled = spilledBytes(view, card, processes);
  if (spilled > 0)
    return {
      kind: 'off_card',
      model: view.id,
      backend: view.backend,
      deviceId: card.id,
      reason: `${observed.name} did not fit on ${card.name}: ${formatBytes(spilled)} of it is in the system's memory, which the card reaches over the bus, so that it is slow. Make room and load it anew, or give it a shorter context or fewer layers.`,
      numbers: { heldBytes, spilledBytes: spilled, predictedBytes },
    };
  if (!isMissing(view, Math.max(heldBytes, memo.settledBytes ?? 0))) return null;
  return {
    kind: 'off_card',
    model: view.id,
    backend: view.backend,
    deviceId: card.id,
    reason: `${observed.name} is loaded, and ${heldBytes === 0 ? 'nothing' : `only ${formatBytes(heldBytes)}`} of the ${formatBytes(predictedBytes)} it takes is on ${card.name}: it computes on the CPU or on another GPU, which is slow, as servers do that found no card when they started or lost it in a suspend. Its server's log says why; starting the server anew is what helps.`,
    numbers: { heldBytes, predictedBytes },
  };
}

/**
 * A model on a GPU that shares the system's memory while a card of its own memory stands by with room for
 * it: servers that find their GPUs by two ways may drop the card (ollama 16667). null: it is on the card, or
 * there is none for it, or nobody can tell. Pure. Not asked where the config says on which device its backend is.
 */
export function wrongGpuEvent(
  view: ModelView,
  devices: readonly DeviceSample[],
  processes: readonly ProcessMemory[],
  nowMs: number,
): NewEvent | null {
  const { observed, predictedBytes } = view;
  const where = devices.find((device) => device.id === view.deviceId);
  if (where?.memory !== 'unified' || where.id === 'system' || view.status !== 'loaded') return null;
  if (nowMs - observed.sinceMs < SETTLED_MS || runsOnCpu(observed.args)) return null;
  if (predictedBytes === null || predictedBytes < LEAST_BYTES) return null;
  const pid = observed.process?.pid ?? null;
  const heldBytes = processes
    .filter((use) => use.pid === pid && use.deviceId === where.id)
    .reduce((sum, use) => sum + (use.bytes ?? 0), 0);
  if (pid === null || heldBytes < predictedBytes * MISSING_SHARE) return null;
  const card = devices.find(
    (device) =>
      device.memory === 'discrete' && device.error === null && (device.freeBytes ?? 0) >= predictedBytes,
  );
  if (card === undefined) return null;
  return {
    kind: 'off_card',
    model: view.id,
    backend: view.backend,
    deviceId: where.id,
    reason: `${observed.name} is on ${where.name}, which shares the system's memory, while ${formatBytes(card.freeBytes)} of ${card.name} is free: its server chose that GPU. If that is meant so, write \`device: "${where.id}"\` at its backend; else its server's log says which GPUs it found.`,
    numbers: { heldBytes, predictedBytes, freeBytes: card.freeBytes },
  };
}
