/** How a server is asked again and again: one question at a time, and pauses that can be cut short. */

export interface SingleFile {
  /** Resolves when a run has ended that began after this call. */
  run(): Promise<void>;
  /** Resolves when none is under way. */
  settled(): Promise<void>;
}

/** Lets `work` run once at a time. Whoever asks while it runs shares the one after: the present one may have begun too early. */
export function singleFile(work: () => Promise<void>): SingleFile {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const run = (): Promise<void> => {
    if (running === null) {
      running = work().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running.then(() => {
      next = null;
      return run();
    });
    return next;
  };
  return {
    run,
    async settled() {
      await running;
    },
  };
}

export interface Pauses {
  /** At once where it is stopped. One at a time. */
  pause(ms: number): Promise<void>;
  /** Ends the pause there is. */
  wake(): void;
}

export function pauses(stopped: AbortSignal): Pauses {
  let end: (() => void) | null = null;
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => end?.(), ms);
        end = () => {
          clearTimeout(timer);
          end = null;
          resolve();
        };
        if (stopped.aborted) end();
      }),
    wake: () => end?.(),
  };
}
