import { MIB } from './quantity.ts';
import type { DeviceSample } from './sample.ts';

/**
 * VRAM counts as full with no more than this left, or a sixteenth of a small card. Not a larger
 * share: while a model loads, its host buffers grow in GTT too, and that is no eviction.
 */
const FULL_LEFT_BYTES = 512 * MIB;
const FULL_LEFT_SHARE = 1 / 16;
/** GTT must have grown by this much within the window: desktops move a few MiB about all the time. */
const GROWTH_BYTES = 64 * MIB;
/** How far back growth is measured. */
export const GTT_WINDOW_MS = 3000;
/** Longer gaps between samples (suspend, a stuck driver) make old and new not comparable. */
const GAP_MS = 5000;

/**
 * Whether the driver is moving VRAM into system pages: GTT grew by 64 MiB within 3 s while VRAM
 * was full at both ends of the growth. Only a discrete card can be in that state; null where it
 * can't be told (unified memory, no GTT figure, too little history). Samples oldest first.
 */
export function evictionUnderWay(samples: readonly DeviceSample[]): boolean | null {
  const last = samples.at(-1);
  if (last === undefined || last.memory !== 'discrete' || last.error !== null) return null;
  if (last.evictionUnderWay !== undefined) return last.evictionUnderWay;
  if (last.gttUsedBytes === null) return null;
  const lastFull = isFull(last);
  if (lastFull === null) return null;
  if (!lastFull) return false;
  let later = last;
  let compared = false;
  for (const sample of samples.slice(0, -1).reverse()) {
    if (sample.id !== last.id || later.takenAtMs - sample.takenAtMs > GAP_MS) break;
    if (last.takenAtMs - sample.takenAtMs > GTT_WINDOW_MS) break;
    later = sample;
    if (sample.gttUsedBytes === null || sample.error !== null) continue;
    compared = true;
    if (last.gttUsedBytes - sample.gttUsedBytes >= GROWTH_BYTES && isFull(sample) === true) return true;
  }
  return compared ? false : null;
}

function isFull(sample: DeviceSample): boolean | null {
  const { totalBytes, usedBytes } = sample;
  if (totalBytes === null || usedBytes === null || totalBytes <= 0) return null;
  return totalBytes - usedBytes <= Math.min(FULL_LEFT_BYTES, totalBytes * FULL_LEFT_SHARE);
}
