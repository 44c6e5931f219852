import { describe, expect, it } from 'vitest';
import { type DesktopPoint, suggestedFloor } from '../../../electron/core/ledger/floor-learning.ts';

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
