import { expect, it } from 'vitest';
import { soak } from '../../build/bench/soak.ts';
import { figure } from '../support/figures.ts';

/** The whole check takes its ten minutes; whoever runs the tests by hand waits one. `npm run bench -- --only soak` takes hours. */
const MINUTES = process.env.CI === undefined ? 1 : 10;

it('turns, loads, evictions and config reloads: every turn answered, the floor kept, nothing grows or fails', async () => {
  const result = await soak(MINUTES * 60_000);
  expect(result.faults).toEqual([]);
  const { turns, kinds } = result;
  expect(turns.local).toBeGreaterThan(0);
  expect(turns.fallback).toBeGreaterThan(0);
  expect(kinds.evicted ?? 0).toBeGreaterThan(0);
  expect(kinds.config_loaded ?? 0).toBeGreaterThan(1);
  figure(
    `${MINUTES} min of soak`,
    `${turns.local} turns answered here, ${turns.fallback} elsewhere, ${turns.refused} refused with a reason; ${kinds.evicted} evictions, ${result.reloads} reloads, ${result.admissions} admissions checked`,
  );
}, 800_000);
