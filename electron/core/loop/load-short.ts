import type { GuardDevice } from '../guards/world.ts';

/**
 * How much is missing for loads in flight, above the hard floor; 0: nothing. Servers load without asking
 * us, and what agents don't work with goes before a race is decided among models. Pure.
 */
export function loadShortBytes(
  device: Pick<GuardDevice, 'fresh' | 'freeBytes' | 'hardFloorBytes' | 'outstandingBytes'>,
): number {
  const { fresh, freeBytes, hardFloorBytes, outstandingBytes } = device;
  if (!fresh || freeBytes === null || outstandingBytes === 0) return 0;
  return Math.max(0, (hardFloorBytes ?? 0) - (freeBytes - outstandingBytes));
}
