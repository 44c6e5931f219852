import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { systemClock } from '../clock.ts';
import { CLOCK_SET_MS } from './wall-watch.ts';

/** How far the wall clock stood ahead of the time since boot, and of which boot: comparable within one. */
export interface WallOffset {
  readonly bootId: string;
  readonly offsetMs: number;
  /** The same against CLOCK_MONOTONIC, which stands still in a suspend. */
  readonly monotonicMs: number;
}

/** random(4): `/proc/sys/kernel/random/boot_id` is new with each boot. null: this system tells none. */
export function wallOffset(): WallOffset | null {
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    const nowMs = Date.now();
    return { bootId, offsetMs: nowMs - uptime() * 1000, monotonicMs: nowMs - systemClock.monotonicMs() };
  } catch {
    return null;
  }
}

/** By how much the clock was set since then; 0 where it was not, and where the machine was started anew, which nobody can tell from a clock that was set. */
export function setSince(before: unknown, now: WallOffset | null): number {
  if (typeof before !== 'object' || before === null || now === null) return 0;
  const { bootId, offsetMs, monotonicMs }: Readonly<Record<keyof WallOffset, unknown>> = {
    bootId: null,
    offsetMs: null,
    monotonicMs: null,
    ...before,
  };
  if (bootId !== now.bootId || typeof offsetMs !== 'number' || typeof monotonicMs !== 'number') return 0;
  const jumpMs = Math.round(now.offsetMs - offsetMs);
  // A container may be told its own uptime (lxcfs): it was started anew, and no clock was set.
  if (now.monotonicMs - monotonicMs < jumpMs - CLOCK_SET_MS) return 0;
  return Math.abs(jumpMs) < CLOCK_SET_MS ? 0 : jumpMs;
}
