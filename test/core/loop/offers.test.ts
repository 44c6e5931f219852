import { expect, it } from 'vitest';
import { type Offer, Offers } from '../../../electron/core/loop/offers.ts';
import { ok } from '../../../shared/errors.ts';

it('what is offered is done once, for whoever says so first, and told when it changes', async () => {
  const done: string[] = [];
  let changes = 0;
  const offers = new Offers(() => {
    changes += 1;
  });
  const offer = (id: string): Offer => ({
    id,
    text: `${id} hangs.`,
    label: 'End it',
    question: 'End it?',
    run: async () => {
      done.push(id);
      return ok({ message: `${id} is gone.` });
    },
  });
  offers.set('drain', [offer('one'), offer('two')]);
  offers.set('drain', [offer('one'), offer('two')]);
  offers.set('orphans', [offer('three')]);
  expect(changes).toBe(2);
  expect(offers.list()).toEqual(
    ['one', 'two', 'three'].map((id) => ({ id, text: `${id} hangs.`, label: 'End it', question: 'End it?' })),
  );
  const signal = new AbortController().signal;
  expect(await offers.accept('two', signal)).toEqual({ ok: true, value: { message: 'two is gone.' } });
  expect(await offers.accept('two', signal)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  expect(done).toEqual(['two']);
  offers.set('drain', []);
  expect(offers.list().map((one) => one.id)).toEqual(['three']);
});
