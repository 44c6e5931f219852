import { expect, it } from 'vitest';
import { soak } from '../../build/bench/soak.ts';
import { figure } from '../support/figures.ts';

it('a minute of turns, loads, evictions and config reloads: every turn answered, the floor kept, nothing failed', async () => {
  const result = await soak(60_000);
  expect(result.faults).toEqual([]);
  const { turns, kinds } = result;
  expect(turns.local).toBeGreaterThan(0);
  expect(turns.fallback).toBeGreaterThan(0);
  expect(kinds.evicted ?? 0).toBeGreaterThan(0);
  expect(kinds.config_loaded ?? 0).toBeGreaterThan(1);
  figure(
    'a minute of soak',
    `${turns.local} turns answered here, ${turns.fallback} elsewhere, ${turns.refused} refused with a reason; ${kinds.evicted} evictions, ${result.reloads} reloads, ${result.admissions} admissions checked`,
  );
});
