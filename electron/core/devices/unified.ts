import type { MemInfo } from './meminfo.ts';

/** A pool that models and the system share; unknown parts are null. */
export interface Pool {
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
}

export interface CarveOut {
  readonly vramTotalBytes: number | null;
  readonly vramUsedBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
}

/**
 * An APU's pool: the carve-out and the GTT together, because drivers put models into both. A full
 * carve-out beside free GTT is no pressure, and GTT is only as free as the system's memory.
 * GTT is pages of system memory, so its ceiling can't be more than MemTotal.
 */
export function apuPool(parts: CarveOut, memory: MemInfo): Pool {
  const { vramTotalBytes, vramUsedBytes, gttTotalBytes, gttUsedBytes } = parts;
  if (vramTotalBytes === null && gttTotalBytes === null) return hostPool(memory);
  const gttCeiling =
    gttTotalBytes !== null && memory.totalBytes !== null
      ? Math.min(gttTotalBytes, memory.totalBytes)
      : gttTotalBytes;
  const totalBytes = sum(vramTotalBytes, gttCeiling);
  const usedBytes = sum(vramUsedBytes, gttUsedBytes);
  const vramFree = difference(vramTotalBytes, vramUsedBytes);
  const gttFree = difference(gttCeiling, gttUsedBytes);
  const gttReach =
    gttFree !== null && memory.availableBytes !== null ? Math.min(gttFree, memory.availableBytes) : gttFree;
  return { totalBytes, usedBytes, freeBytes: sum(vramFree, gttReach) };
}

/** Jetson, Grace-Blackwell, a machine without a GPU: MemTotal, and what MemAvailable leaves. */
export function hostPool(memory: MemInfo): Pool {
  return {
    totalBytes: memory.totalBytes,
    usedBytes: difference(memory.totalBytes, memory.availableBytes),
    freeBytes: memory.availableBytes,
  };
}

function sum(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

function difference(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(0, a - b);
}
