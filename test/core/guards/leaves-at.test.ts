import { describe, expect, it } from 'vitest';
import { leavesAt } from '../../../electron/core/guards/leaves-at.ts';
import type { GuardModel, GuardWorld } from '../../../electron/core/guards/world.ts';
import { batch, device, GB, model, NOW, small, world } from './worlds.ts';

const at = (
  one: GuardModel,
  others: readonly GuardModel[] = [],
  more: Parameters<typeof world>[2] = {},
  freeGb = 10,
) => leavesAt(one, world(device({ freeBytes: freeGb * GB }), [one, ...others], more));

describe('when an idle rule would unload a model', () => {
  it('never, where nothing presses', () => {
    expect(at(model('a'))).toBeNull();
  });

  it('by its ttl', () => {
    expect(at(model('a', { ttlMs: 300_000, lastUsedAtMs: NOW - 100_000 }))).toBe(NOW + 200_000);
  });

  it('rule 9: below the floor, when it becomes idle: the sole big one between hard floor and floor', () => {
    expect(at(model('big', { lastUsedAtMs: NOW - 60_000 }), [small('nine')], {}, 3)).toBe(NOW + 120_000);
    expect(at(small('nine'), [], {}, 3)).toBeNull();
  });

  it('rule 9: not where an earlier one gives enough', () => {
    const later = model('later', { lastUsedAtMs: NOW - 10_000 });
    expect(at(later, [model('sooner', { lastUsedAtMs: NOW - 60_000 })], {}, 3)).toBeNull();
    expect(at(later, [model('sooner', { bytes: 0.5 * GB })], {}, 3)).toBe(NOW + 170_000);
  });

  it('now: asleep, beyond the count, or batch-only beside a big one', () => {
    expect(at(model('a', { guarded: 'observe' }), [], { asleep: true })).toBe(NOW);
    expect(at(model('a'), [model('b', { lastUsedAtMs: NOW })], { policy: { maxBig: 1 } })).toBe(NOW);
    expect(at(batch('a'), [model('b', { busy: true })])).toBe(NOW);
  });

  it('unknown or never: busy, unknown busy, pinned, observed, stale', () => {
    for (const more of [{ busy: true }, { busy: null }, { pinned: true }, { guarded: 'observe' as const }])
      expect(at(model('a', { ttlMs: 1, ...more }))).toBeNull();
    const stale: GuardWorld = world(device({ fresh: false }), [model('a', { ttlMs: 1 })]);
    expect(leavesAt(model('a', { ttlMs: 1 }), stale)).toBeNull();
  });
});
