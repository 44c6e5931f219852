import { expect, it } from 'vitest';
import { loadShortBytes } from '../../../electron/core/loop/load-short.ts';

const device = { fresh: true, freeBytes: 1_000, hardFloorBytes: 100, outstandingBytes: 800 };

it.each([
  ['fits beside the hard floor', {}, 0],
  ['is a little too large', { outstandingBytes: 950 }, 50],
  ['is larger than all that is free', { outstandingBytes: 1_500 }, 600],
  ['is over, however little is free', { outstandingBytes: 0, freeBytes: 5 }, 0],
  ['is on a device whose floor is not known', { outstandingBytes: 1_200, hardFloorBytes: null }, 200],
  // Rule 6: nothing is done on what is not known.
  ['is on a device that does not tell', { freeBytes: null, outstandingBytes: 5_000 }, 0],
  ['is on a device that was not read of late', { fresh: false, outstandingBytes: 5_000 }, 0],
])('a load that %s', (_, change, short) => {
  expect(loadShortBytes({ ...device, ...change })).toBe(short);
});
