import { KIB, parseCount } from './quantity.ts';

/** System memory in bytes, of proc(5) /proc/meminfo. A line that is missing or cut short is null. */
export interface MemInfo {
  readonly totalBytes: number | null;
  /** The kernel's estimate of what can be had without swapping. */
  readonly availableBytes: number | null;
  readonly freeBytes: number | null;
  readonly swapTotalBytes: number | null;
  readonly swapFreeBytes: number | null;
}

export function parseMemInfo(text: string): MemInfo {
  const field = (name: string): number | null => {
    // The unit must be there: without it the line was cut in the middle of its figure.
    const found = new RegExp(`^${name}:\\s*(\\d+)\\s*kB\\s*$`, 'm').exec(text);
    const kib = parseCount(found?.[1]);
    return kib === null ? null : kib * KIB;
  };
  const totalBytes = field('MemTotal');
  const availableBytes = field('MemAvailable');
  return {
    totalBytes,
    availableBytes:
      availableBytes !== null && totalBytes !== null ? Math.min(availableBytes, totalBytes) : availableBytes,
    freeBytes: field('MemFree'),
    swapTotalBytes: field('SwapTotal'),
    swapFreeBytes: field('SwapFree'),
  };
}
