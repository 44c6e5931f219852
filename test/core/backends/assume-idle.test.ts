import { expect, it } from 'vitest';
import { assumingIdle } from '../../../electron/core/backends/assume-idle.ts';
import type { Backend, BusyAnswer, ObservedModel } from '../../../electron/core/backends/backend.ts';
import { observedModel } from '../../support/model-view.ts';
import { handClock } from '../../support/serve-fake.ts';

const SIGNAL = new AbortController().signal;
const UNKNOWN: BusyAnswer = { busy: null, why: 'nobody tells' };

/** A backend that has one model and answers one thing. */
function backend(model: Partial<ObservedModel>, answer: BusyAnswer = UNKNOWN): Backend {
  const nothing = async () => ({ ok: true as const, value: undefined });
  return {
    name: 'studio',
    kind: 'lmstudio',
    url: 'http://127.0.0.1:1234',
    start: () => undefined,
    stop: async () => undefined,
    load: nothing,
    unload: nothing,
    refresh: async () => undefined,
    confirmIdle: async () => answer,
    snapshot: () => ({
      name: 'studio',
      kind: 'lmstudio',
      url: 'http://127.0.0.1:1234',
      status: 'up',
      sinceMs: 0,
      error: null,
      version: null,
      models: [observedModel({ status: 'loaded', sinceMs: 1_000, ...model })],
      takenAtMs: 0,
      tellsBusy: false,
      notes: [],
    }),
  };
}

it('unknown counts as idle after the time that was set, and not before', async () => {
  const clock = handClock();
  const assumed = assumingIdle(backend({}), 600_000, clock, () => false);
  clock.advance(599_000);
  expect(assumed.snapshot().models[0]?.busy).toBeNull();
  expect(await assumed.confirmIdle('m', SIGNAL)).toEqual(UNKNOWN);
  clock.advance(1_000);
  expect(assumed.snapshot().models[0]?.busy).toBe(false);
  expect(await assumed.confirmIdle('m', SIGNAL)).toEqual({ busy: false });
});

it('a request of ours is a sign of use, to its end', async () => {
  const clock = handClock();
  let serving = true;
  const assumed = assumingIdle(backend({}), 600_000, clock, () => serving);
  clock.advance(900_000);
  expect(assumed.snapshot().models[0]?.busy).toBeNull();
  serving = false;
  clock.advance(599_000);
  expect(assumed.snapshot().models[0]?.busy).toBeNull();
  clock.advance(1_000);
  expect(assumed.snapshot().models[0]).toMatchObject({ busy: false, lastBusyAtMs: 901_000 });
});

it.each<[string, Partial<ObservedModel>, BusyAnswer]>([
  ['what is told as busy stays busy', { busy: true }, { busy: true, detail: 'works' }],
  ['a model that loads is not assumed anything', { status: 'loading' }, UNKNOWN],
])('%s', async (_, model, answer) => {
  const clock = handClock();
  const assumed = assumingIdle(backend(model, answer), 1_000, clock, () => false);
  clock.advance(10_000_000);
  expect(assumed.snapshot().models[0]?.busy).toBe(model.busy ?? null);
  expect(await assumed.confirmIdle('m', SIGNAL)).toEqual(answer);
});
