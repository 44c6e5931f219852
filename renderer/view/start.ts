/** What the set-up guide proposes. Pure. */
import { resolveFloor } from '../../shared/settings.ts';

/** The built-in floor of a device, in bytes; of an unknown one that of a 32 GB card. */
export function usualFloor(totalBytes: number | null): number {
  const floor = resolveFloor({ keep: null, hard: null, mode: 'free' }, totalBytes, null);
  return floor.floorBytes ?? 4_000_000_000;
}
