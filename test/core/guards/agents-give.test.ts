import { expect, it } from 'vitest';
import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import { device, GB, model, NOW, POLICY } from './worlds.ts';

/** Who leaves with 1.5 GB free under a floor of 4 GB, when agents give so much back. */
function leaving(givingBytes: number): readonly string[] {
  const { decisions } = decide(
    {
      nowMs: NOW,
      devices: [device({ freeBytes: 1.5 * GB, givingBytes })],
      models: [model('idle')],
      policy: POLICY,
      asleep: false,
      resumedAtMs: null,
      wantedFree: [],
      drain: null,
    },
    emptyMemory(),
  );
  return decisions.map((decision) => decision.modelId);
}

it('lets no model leave for what contexts of agents give back already', () => {
  expect(leaving(0)).toEqual(['router/idle']);
  expect(leaving(1 * GB)).toEqual(['router/idle']);
  expect(leaving(2.5 * GB)).toEqual([]);
});
