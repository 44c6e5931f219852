/**
 * Time comes in as an argument. Durations and time-outs run on monotonic time (CLOCK_MONOTONIC,
 * one clock for every process of the machine); wall time is for people and files only.
 */
export interface Clock {
  /** Milliseconds of CLOCK_MONOTONIC; comparable between processes of one boot. */
  monotonicMs(): number;
  /** Milliseconds since the epoch. */
  epochMs(): number;
}

export const systemClock: Clock = {
  monotonicMs: () => {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1000 + nanoseconds / 1e6;
  },
  epochMs: () => Date.now(),
};
