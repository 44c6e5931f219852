import { formatDuration } from '../../../shared/format.ts';
import type { Clock } from '../clock.ts';
import type { Backend, BackendSnapshot, ObservedModel } from './backend.ts';

/**
 * A backend whose models count as idle so long after their last sign of use, where nobody can tell
 * (`assumeIdle` in the config). Signs are what the backend shows, and requests that went through us.
 */
export function assumingIdle(
  backend: Backend,
  assumeIdleMs: number,
  clock: Clock,
  /** Whether a request of ours is with that model now. */
  isServing: (model: string) => boolean,
): Backend {
  const servedAtMs = new Map<string, number>();

  const lastSignMs = (model: ObservedModel): number =>
    Math.max(model.sinceMs, model.lastBusyAtMs ?? 0, servedAtMs.get(model.name) ?? 0);

  const assumed = (model: ObservedModel): ObservedModel => {
    const nowMs = clock.monotonicMs();
    if (isServing(model.name)) servedAtMs.set(model.name, nowMs);
    const served = servedAtMs.get(model.name) ?? null;
    const lastBusyAtMs =
      served === null ? model.lastBusyAtMs : Math.max(served, model.lastBusyAtMs ?? served);
    const isAssumed =
      model.status === 'loaded' && model.busy === null && nowMs - lastSignMs(model) >= assumeIdleMs;
    return { ...model, lastBusyAtMs, busy: isAssumed ? false : model.busy };
  };

  const snapshot = (): BackendSnapshot => {
    const seen = backend.snapshot();
    const note = `Where ${backend.name} does not tell whether a model works, it counts as idle ${formatDuration(assumeIdleMs)} after its last sign of use: that is how assumeIdle is set.`;
    return { ...seen, models: seen.models.map(assumed), notes: [...seen.notes, note] };
  };

  return {
    ...backend,
    snapshot,
    async confirmIdle(model, signal) {
      const answer = await backend.confirmIdle(model, signal);
      if (answer.busy !== null) return answer;
      const now = snapshot().models.find((one) => one.name === model || one.aliases.includes(model));
      return now?.busy === false ? { busy: false } : answer;
    },
  };
}
