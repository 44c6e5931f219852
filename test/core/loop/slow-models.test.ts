import { expect, it } from 'vitest';
import type { ModelView } from '../../../electron/core/loop/model-view.ts';
import type { Offer } from '../../../electron/core/loop/offers.ts';
import { SlowModels } from '../../../electron/core/loop/slow-models.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { modelView } from '../../support/model-view.ts';

const GB = 1_000_000_000;

it('a model slow on a card with room is told once, and loaded anew at a person’s word', async () => {
  let view: ModelView | null = modelView({ status: 'loaded', observed: { status: 'loaded', sinceMs: 5 } });
  let freeBytes = 0.2 * GB;
  const events: NewEvent[] = [];
  const offers = new Map<string, Offer | null>();
  const reloaded: string[] = [];
  const slow = new SlowModels({
    view: () => view,
    device: () => ({ name: 'RTX', freeBytes, isEvicting: false }),
    tell: (event) => events.push(event),
    offer: (modelId, offer) => offers.set(modelId, offer),
    reload: async (modelId) => {
      reloaded.push(modelId);
      return true;
    },
  });
  let atMs = 0;
  const answer = (perS: number): void => {
    atMs += 20_000;
    slow.served({
      atMs,
      model: 'router/m',
      backend: 'router',
      agent: null,
      class: 'batch',
      route: 'local',
      reason: null,
      status: 200,
      promptTokens: 100,
      generatedTokens: 100,
      generatedMs: 100_000 / perS,
      waitedMs: 0,
      firstByteMs: 1,
      totalMs: 10_000,
    });
  };
  for (let index = 0; index < 5; index += 1) answer(50);
  for (let index = 0; index < 6; index += 1) answer(20);
  // The card is full: that other program is still there.
  expect(events).toEqual([]);
  freeBytes = 9 * GB;
  answer(20);
  answer(20);
  expect(events.map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/20\.0 tokens a second, and did with 50\.0, while 9\.0 GB of RTX is free/),
  ]);
  const offer = offers.get('router/m');
  expect(await offer?.run(new AbortController().signal)).toMatchObject({ ok: true });
  expect(reloaded).toEqual(['router/m']);
  slow.look();
  expect(offers.get('router/m')).toBe(offer);
  view = modelView({ status: 'loaded', observed: { status: 'loaded', sinceMs: 9_000 } });
  slow.look();
  expect(offers.get('router/m')).toBeNull();
});
