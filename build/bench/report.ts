/** One way to do the thing that is measured. */
export interface BenchSide {
  readonly name: string;
  /** Of one operation, in microseconds. */
  readonly samplesUs: readonly number[];
}

export interface BenchReport {
  readonly part: string;
  readonly sides: readonly BenchFigures[];
  /** What could not be measured here, and aims with whether they are met. */
  readonly notes: readonly string[];
  /** All that was measured, for `--json`. */
  readonly details?: unknown;
  /** True: something that must hold did not, and the notes say what. */
  readonly failed?: boolean;
}

export interface BenchFigures {
  readonly name: string;
  readonly count: number;
  readonly medianUs: number;
  readonly p99Us: number;
  /** Median over the baseline's; null for the baseline itself. */
  readonly ratio: number | null;
}

/** `share` of 0.5 is the median; NaN of nothing. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/**
 * How far the median of so many rounds is likely to be off (one standard error): by their quartiles, which a
 * round that something else got in the way of does not move. Of a normal distribution the quartiles are 1.35
 * standard deviations apart, and a median's error is 1.25 times a mean's.
 */
export function medianNoise(rounds: readonly number[]): number {
  return ((quantile(rounds, 0.75) - quantile(rounds, 0.25)) / 1.35) * (1.25 / Math.sqrt(rounds.length));
}

/** The first side is the baseline. */
export function figures(sides: readonly BenchSide[]): readonly BenchFigures[] {
  const baseline = sides[0] === undefined ? Number.NaN : quantile(sides[0].samplesUs, 0.5);
  return sides.map(({ name, samplesUs }, index) => {
    const medianUs = quantile(samplesUs, 0.5);
    return {
      name,
      count: samplesUs.length,
      medianUs,
      p99Us: quantile(samplesUs, 0.99),
      ratio: index === 0 ? null : medianUs / baseline,
    };
  });
}

export function reportText(report: BenchReport): string {
  const width = Math.max(...report.sides.map((side) => side.name.length));
  const rows = report.sides.map((side) => {
    const ratio = side.ratio === null ? 'baseline' : `${side.ratio.toFixed(2)} ×`;
    const cells = [micros(side.medianUs), micros(side.p99Us), ratio].map((cell) => cell.padStart(11));
    return `  ${side.name.padEnd(width)}  ${cells.join('')}  n=${side.count}`;
  });
  const head = `  ${''.padEnd(width)}  ${['median', 'p99', 'ratio'].map((cell) => cell.padStart(11)).join('')}`;
  return [head, ...rows, ...report.notes.map((note) => `  ${note}`)].join('\n');
}

function micros(us: number): string {
  return us >= 10_000 ? `${(us / 1000).toFixed(1)} ms` : `${us.toFixed(1)} µs`;
}
