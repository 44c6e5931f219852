/** A machine with far more than one screen of models and events. */
import type { EventKind, LandlordEvent } from '../../shared/events.ts';
import { loadState, type Scenario } from './states.ts';

const KINDS: readonly EventKind[] = ['loaded', 'unloaded', 'evicted', 'denied', 'floor_threatened'];

export function largeScenario(nowMs: number, models = 200, events = 5000): Scenario {
  const { state } = loadState('fine', nowMs);
  const [first] = state.models;
  if (first === undefined) throw new Error('the state has a model');
  const name = (index: number): string => `router/model-${String(index).padStart(3, '0')}`;
  return {
    state: {
      ...state,
      models: Array.from({ length: models }, (_, index) => ({
        ...first,
        id: name(index),
        status: index < 3 ? ('loaded' as const) : ('unloaded' as const),
        busy: index < 3 ? false : null,
        measuredBytes: index < 3 ? 2e9 : null,
        lastUsedAt: new Date(nowMs - index * 60_000).toISOString(),
      })),
    },
    events: Array.from({ length: events }, (_, index): LandlordEvent => {
      const id = index + 1;
      const model = name((index * 7) % models);
      return {
        id,
        at: new Date(nowMs - (events - index) * 20_000).toISOString(),
        kind: KINDS[index % KINDS.length] ?? 'loaded',
        model,
        deviceId: state.devices[0]?.id ?? 'sim:0',
        reason: `${model.slice(7)} reason ${id}: 6.2 GB came back in 1.1 s.`,
        numbers: { freedBytes: 6.2e9, tookMs: 1100 },
      };
    }),
  };
}
