import { formatBytes } from '../../../shared/format.ts';
import type { TenantState } from '../../../shared/state.ts';

/** Sizes of one device's holders at one time, by name. */
interface Look {
  readonly atMs: number;
  readonly bytes: ReadonlyMap<string, number>;
  /** Those that were there without a figure. */
  readonly unknown: ReadonlySet<string>;
}

/** Recent looks at one device, oldest first; plain data, replaced by each `look`. */
export interface GrowthMemory {
  readonly looks: readonly Look[];
}

export interface Growth {
  readonly name: string;
  readonly bytes: number;
}

const KEEP_MS = 120_000;
/** Looks closer together than this tell nothing new and are not kept. */
const APART_MS = 1_000;

export function noGrowth(): GrowthMemory {
  return { looks: [] };
}

/** Adds what the tenants of one device hold at `nowMs` (monotonic). A tenant without a figure is left out, not 0. */
export function look(memory: GrowthMemory, tenants: readonly TenantState[], nowMs: number): GrowthMemory {
  const kept = memory.looks.filter((one) => nowMs - one.atMs <= KEEP_MS);
  const last = kept.at(-1);
  const current = { atMs: nowMs, ...sizes(tenants) };
  // The newest look always stands; the one before it is dropped while it is too close to its own.
  const before = kept.at(-2);
  const crowded = last !== undefined && before !== undefined && last.atMs - before.atMs < APART_MS;
  return { looks: [...(crowded ? kept.slice(0, -1) : kept), current] };
}

/**
 * Who has grown most over the last `windowMs`, and by how much; null: nobody, or there is no earlier
 * look. Someone who came within the window has grown from nothing; someone whose size was unknown at
 * the start has not (rule 5).
 */
export function mostGrown(memory: GrowthMemory, nowMs: number, windowMs: number): Growth | null {
  const now = memory.looks.at(-1);
  const start = memory.looks.find((one) => nowMs - one.atMs <= windowMs);
  if (now === undefined || start === undefined || start === now) return null;
  let most: Growth | null = null;
  for (const [name, bytes] of now.bytes) {
    if (start.unknown.has(name)) continue;
    const before = start.bytes.get(name) ?? 0;
    const grown = bytes - before;
    if (grown > 0 && (most === null || grown > most.bytes)) most = { name, bytes: grown };
  }
  return most;
}

/** `firefox grew by 0.9 GB`; null for less than `atLeastBytes`, which nobody notices. */
export function growthSentence(growth: Growth | null, atLeastBytes = 100_000_000): string | null {
  if (growth === null || growth.bytes < atLeastBytes) return null;
  return `${growth.name} grew by ${formatBytes(growth.bytes)}`;
}

/** Programs of the desktop by their own names, what is left of it under its; all others as wholes. */
function sizes(tenants: readonly TenantState[]): Pick<Look, 'bytes' | 'unknown'> {
  const bytes = new Map<string, number>();
  const unknown = new Set<string>();
  const add = (name: string, more: number) => bytes.set(name, (bytes.get(name) ?? 0) + more);
  for (const { kind, name, measuredBytes, parts } of tenants) {
    if (measuredBytes === null) unknown.add(name);
    else if (kind !== 'desktop') add(name, measuredBytes);
    else {
      const named = (parts ?? []).reduce((sum, part) => sum + part.bytes, 0);
      for (const part of parts ?? []) add(part.name, part.bytes);
      add(name, Math.max(0, measuredBytes - named));
    }
  }
  return { bytes, unknown };
}
