import { describe, expect, it } from 'vitest';
import { type FloorSettings, isFloorTooHigh, resolveFloor } from '../../shared/settings.ts';

const GB = 1_000_000_000;
const MIB = 1024 * 1024;
const floor = (change: Partial<FloorSettings> = {}): FloorSettings => ({
  keep: null,
  hard: null,
  mode: 'free',
  ...change,
});

describe('the floor of a device', () => {
  it.each([
    ['the seed’s 32 GB card', 34.2 * GB, 4 * GB],
    ['24 GB', 24 * GB, 3 * GB],
    ['8 GB', 8 * GB, 1 * GB],
    ['2 GB', 2 * GB, 512 * MIB],
  ])('is 12.5 %% of total, at most 4 GB, at least 512 MiB: %s', (_what, total, expected) => {
    expect(resolveFloor(floor(), total, null)).toEqual({
      floorBytes: expected,
      hardFloorBytes: Math.floor(expected / 2),
    });
  });

  it('is unknown where the total is and a share is asked for (rule 5)', () => {
    expect(resolveFloor(floor(), null, null)).toEqual({ floorBytes: null, hardFloorBytes: null });
    expect(resolveFloor(floor({ keep: { share: 0.2 } }), null, null).floorBytes).toBeNull();
    expect(resolveFloor(floor({ keep: { bytes: GB } }), null, null).floorBytes).toBe(GB);
  });

  it('auto is what was learned, and the built-in rule until then', () => {
    expect(resolveFloor(floor({ keep: 'auto' }), 24 * GB, null).floorBytes).toBe(3 * GB);
    // A server that nobody could name took 18 GB once, and that counts as the desktop's.
    expect(resolveFloor(floor({ keep: 'auto' }), 24 * GB, 18 * GB).floorBytes).toBe(6 * GB);
    expect(resolveFloor(floor({ keep: 'auto' }), 6 * GB, 5 * GB).floorBytes).toBe(2 * GB);
    expect(resolveFloor(floor({ keep: 'auto' }), 2 * GB, 1.8 * GB).floorBytes).toBe(GB);
    expect(resolveFloor(floor({ keep: 'auto' }), 24 * GB, 1.2 * GB)).toEqual({
      floorBytes: 1.2 * GB,
      hardFloorBytes: 0.6 * GB,
    });
  });

  it('share counts what the desktop already uses, and never goes under 512 MiB', () => {
    const share = floor({ keep: { bytes: 4 * GB }, mode: 'share' });
    expect(resolveFloor(share, 24 * GB, null, 1.5 * GB).floorBytes).toBe(2.5 * GB);
    expect(resolveFloor(share, 24 * GB, null, 9 * GB).floorBytes).toBe(512 * MIB);
    expect(resolveFloor(share, 24 * GB, null, null).floorBytes).toBe(4 * GB);
    expect(resolveFloor({ ...share, mode: 'free' }, 24 * GB, null, 1.5 * GB).floorBytes).toBe(4 * GB);
  });

  it('is the built-in rule where what was asked for is the whole device, and never most of a small one', () => {
    const slip = floor({ keep: { bytes: 100 * GB } });
    expect(isFloorTooHigh(slip, 34.2 * GB)).toBe(true);
    expect(resolveFloor(slip, 34.2 * GB, null).floorBytes).toBe(4 * GB);
    expect(isFloorTooHigh(floor({ keep: { bytes: 30 * GB } }), 34.2 * GB)).toBe(false);
    expect(resolveFloor(floor(), 600 * MIB, null).floorBytes).toBe(300 * MIB);
  });

  it('a hard floor is never above the floor', () => {
    const high = floor({ keep: { bytes: 2 * GB }, hard: { bytes: 3 * GB } });
    expect(resolveFloor(high, 24 * GB, null)).toEqual({ floorBytes: 2 * GB, hardFloorBytes: 2 * GB });
  });
});
