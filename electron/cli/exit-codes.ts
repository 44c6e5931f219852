import type { LandlordError } from '../../shared/errors.ts';

/** Design §5.2; 64, 65, 69 and 75 are EX_USAGE, EX_DATAERR, EX_UNAVAILABLE and EX_TEMPFAIL of sysexits(3), 126 and 127 the shells'. */
export const EXIT = {
  done: 0,
  failed: 1,
  noRuntime: 3,
  unknown: 4,
  usage: 64,
  badFile: 65,
  refused: 69,
  busy: 75,
  notAllowed: 126,
  notFound: 127,
} as const;

export function exitCodeOf(error: Pick<LandlordError, 'code'>): number {
  return error.code === 'no_runtime' ? EXIT.noRuntime : EXIT.refused;
}
