import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type StopSignal = (typeof SIGNALS)[number];

/** The shell's convention: 128 plus the signal's number. */
export function signalExitCode(signal: StopSignal): number {
  return 128 + constants.signals[signal];
}

/** For commands that have nothing to put in order. */
export function exitOnSignals(): void {
  for (const signal of SIGNALS) process.once(signal, () => process.exit(signalExitCode(signal)));
}

/**
 * Resolves on the first signal, so that what runs can stop in order; the next one ends the process at
 * once. A terminal that goes away (SIGHUP) is a signal like the others.
 */
export function firstSignal(): Promise<StopSignal> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (stopping) process.exit(signalExitCode(signal));
        stopping = true;
        resolve(signal);
      });
    }
  });
}
