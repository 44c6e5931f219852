/** When to try again what failed: after `firstMs`, then twice as long each time, at most `mostMs`. Never gives up. */
export interface BackOff {
  due(nowMs: number): boolean;
  failed(nowMs: number): void;
  worked(): void;
  /** How long the present wait is; 0 when nothing failed. */
  readonly waitMs: number;
}

export function backOff(firstMs: number, mostMs: number): BackOff {
  let waitMs = 0;
  let dueAtMs = Number.NEGATIVE_INFINITY;
  return {
    due: (nowMs) => nowMs >= dueAtMs,
    failed: (nowMs) => {
      waitMs = waitMs === 0 ? firstMs : Math.min(mostMs, waitMs * 2);
      dueAtMs = nowMs + waitMs;
    },
    worked: () => {
      waitMs = 0;
      dueAtMs = Number.NEGATIVE_INFINITY;
    },
    get waitMs() {
      return waitMs;
    },
  };
}
