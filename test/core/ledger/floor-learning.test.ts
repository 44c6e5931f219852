import { describe, expect, it } from 'vitest';
import {
  type DesktopPoint,
  desktopLevels,
  suggestedFloor,
} from '../../../electron/core/ledger/floor-learning.ts';

const GB = 1_000_000_000;
const SPAN_MS = 600_000;

/** One reading a minute for so many spans of ten; `grow` says by how much a span rises, and it falls back after. */
function days(spans: number, grow: (span: number) => number, base = 2 * GB): readonly DesktopPoint[] {
  return Array.from({ length: spans * 10 }, (_, index) => {
    const span = Math.floor(index / 10);
    return { atMs: span * SPAN_MS + (index % 10) * 60_000, bytes: base + (grow(span) * (index % 10)) / 9 };
  });
}

describe('the floor that a desktop’s own use suggests', () => {
  it('is the 95th percentile of what it grew by within ten minutes', () => {
    // Growth of 0.05, 0.1, … 5 GB: the 95th of a hundred is 4.75.
    expect(suggestedFloor(days(100, (span) => (span + 1) * 0.05 * GB))).toBeCloseTo(4.75 * GB, -3);
  });

  it('counts a rise from the lowest before it, and no fall', () => {
    const falling = days(40, () => -GB, 10 * GB);
    expect(suggestedFloor(falling)).toBe(512 * 1024 * 1024);
    const spikes = days(40, () => 0).map((point, index) => ({
      ...point,
      bytes: 2 * GB + (index % 10 === 5 ? 1.3 * GB : 0),
    }));
    expect(suggestedFloor(spikes)).toBe(1.3 * GB);
  });

  it('is at least 512 MiB', () => {
    expect(suggestedFloor(days(40, () => 0))).toBe(512 * 1024 * 1024);
  });

  it('is unknown with less than three hours of readings, and unknown ones are no readings (rule 5)', () => {
    expect(suggestedFloor([])).toBeNull();
    expect(suggestedFloor(days(17, () => GB))).toBeNull();
    expect(suggestedFloor(days(18, () => GB))).not.toBeNull();
    const unknown = days(40, () => GB).map((point) => ({ ...point, bytes: null }));
    expect(suggestedFloor(unknown)).toBeNull();
  });
});

describe('what a desktop usually holds', () => {
  it('is what it idles at and what it works at, whatever one night or one game was like', () => {
    const points = Array.from({ length: 1000 }, (_, index) => ({
      atMs: index * 60_000,
      bytes: index < 300 ? 0.9 * GB : index < 980 ? 2.6 * GB : 9 * GB,
    }));
    expect(desktopLevels(points)).toEqual({ idleBytes: 0.9 * GB, busyBytes: 2.6 * GB });
  });

  it('is unknown with too little, and unknown readings are none (rule 5)', () => {
    expect(desktopLevels(days(30, () => 0))).toBeNull();
    expect(desktopLevels(days(36, () => 0))).toEqual({ idleBytes: 2 * GB, busyBytes: 2 * GB });
    expect(desktopLevels(days(36, () => 0).map((point) => ({ ...point, bytes: null })))).toBeNull();
  });
});
