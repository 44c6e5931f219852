import { describe, expect, it } from 'vitest';
import { isSoleBig } from '../../../electron/core/loop/load-command.ts';
import type { ModelView } from '../../../electron/core/loop/model-view.ts';
import { modelView } from '../../support/model-view.ts';

const mine = modelView({ name: 'mine' });

function among(others: readonly ModelView[], promised: readonly string[] = []): boolean {
  return isSoleBig(
    { models: { views: () => [mine, ...others] }, isPromised: (id) => promised.includes(id) },
    mine,
  );
}

describe('the only big model, which may go down to the hard floor', () => {
  it('has no other big one beside it', () => {
    expect(among([])).toBe(true);
    expect(among([modelView({ name: 'other', status: 'unloaded' })])).toBe(true);
    expect(among([modelView({ name: 'other', status: 'loaded' })])).toBe(false);
    expect(among([modelView({ name: 'other', status: 'loading' })])).toBe(false);
    expect(among([modelView({ name: 'other', status: 'loaded', big: false })])).toBe(true);
    expect(among([modelView({ name: 'other', status: 'loaded', deviceId: 'sim:1' })])).toBe(true);
  });

  it('nor one that is booked and about to load: two that ask at once are not both alone', () => {
    expect(among([modelView({ name: 'other' })], ['router/other'])).toBe(false);
    expect(among([modelView({ name: 'other', big: false })], ['router/other'])).toBe(true);
    expect(among([], ['router/mine'])).toBe(true);
  });
});
