import type { LandlordError } from '../../shared/errors.ts';

/** Design §5.2; 64 and 69 are EX_USAGE and EX_UNAVAILABLE of sysexits(3). */
export const EXIT = { done: 0, noRuntime: 3, usage: 64, refused: 69 } as const;

export function exitCodeOf(error: Pick<LandlordError, 'code'>): number {
  return error.code === 'no_runtime' ? EXIT.noRuntime : EXIT.refused;
}
