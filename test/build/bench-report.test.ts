import { describe, expect, it } from 'vitest';
import { figures, medianNoise, quantile, reportText } from '../../build/bench/report.ts';

describe('what a bench prints', () => {
  it('takes median and p99 from the samples, whatever their order', () => {
    const samples = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([quantile(samples, 0.5), quantile(samples, 0.99)]).toEqual([51, 100]);
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  it('says how far a median may be off, whatever a few rounds met with', () => {
    const rounds = Array.from({ length: 100 }, (_, index) => index);
    expect(medianNoise(rounds)).toBeCloseTo(4.63, 2);
    expect(medianNoise(rounds.map((value) => (value === 99 ? 100_000 : value)))).toBeCloseTo(4.63, 2);
    expect(medianNoise([7, 7, 7])).toBe(0);
  });

  it('compares each side with the first', () => {
    const sides = figures([
      { name: 'bare', samplesUs: [2, 2, 2] },
      { name: 'ours', samplesUs: [5, 6, 9] },
    ]);
    expect(sides.map((side) => side.ratio)).toEqual([null, 3]);
    const text = reportText({ part: 'lane', sides, notes: ['a note'] });
    expect(text).toContain('baseline');
    expect(text).toMatch(/ours +6\.0 µs +9\.0 µs +3\.00 × {2}n=3/);
    expect(text).toContain('a note');
  });
});
