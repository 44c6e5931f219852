import type { ControlLoop } from '../control-loop.ts';

/** Busy now, or in the time before that. */
export function usedModels(loop: ControlLoop, nowMs: number, withinMs: number): readonly string[] {
  return loop.models
    .views()
    .filter(
      ({ observed }) =>
        observed.busy === true ||
        (observed.lastBusyAtMs !== null && nowMs - observed.lastBusyAtMs < withinMs),
    )
    .map((view) => view.id);
}
