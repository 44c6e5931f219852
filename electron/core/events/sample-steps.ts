/** How long a kept row of memory readings stands for, and for how long it is kept. Pure. */
export interface SampleStep {
  readonly stepMs: number;
  readonly keepMs: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Each reading is written in every step, the fullest of a step standing for it. Three minutes, twenty
 * minutes and twelve hours are what a chart of some 500 points over a day, a week and a year shows, so
 * that it reads about as many rows as it draws; all steps of a device together take some 35 MB.
 */
export const SAMPLE_STEPS: readonly SampleStep[] = [
  { stepMs: 10_000, keepMs: 48 * HOUR_MS },
  { stepMs: MINUTE_MS, keepMs: 30 * DAY_MS },
  { stepMs: 3 * MINUTE_MS, keepMs: 60 * DAY_MS },
  { stepMs: 20 * MINUTE_MS, keepMs: 366 * DAY_MS },
  { stepMs: 2 * HOUR_MS, keepMs: 5 * 366 * DAY_MS },
  { stepMs: 12 * HOUR_MS, keepMs: 10 * 366 * DAY_MS },
];

/** What counts reading by reading (a replay, a floor that is learnt) is told nothing coarser. */
const COARSEST_WHOLE_MS = MINUTE_MS;

/**
 * The steps to read, finest first: the coarsest that is still as fine as asked, and the coarser ones
 * for the time before it. Without `stepMs`: every row that still tells one reading from the next.
 */
export function stepsToRead(stepMs: number | undefined): readonly SampleStep[] {
  if (stepMs === undefined) return SAMPLE_STEPS.filter((one) => one.stepMs <= COARSEST_WHOLE_MS);
  const from = SAMPLE_STEPS.findLastIndex((one) => one.stepMs <= stepMs);
  return SAMPLE_STEPS.slice(Math.max(0, from));
}

/** Whether a step's rows also tell which models were used: only what is read whole asks for it. */
export function tellsUse({ stepMs }: SampleStep): boolean {
  return stepMs <= COARSEST_WHOLE_MS;
}

/** How far apart the finest rows of that age are; an hour's grace for what is being deleted. */
export function keptStepMs(ageMs: number): number {
  const step = SAMPLE_STEPS.find(({ keepMs }) => ageMs <= keepMs - HOUR_MS) ?? SAMPLE_STEPS.at(-1);
  return step?.stepMs ?? 0;
}
