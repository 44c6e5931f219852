import { describe, expect, it } from 'vitest';
import { formatBytes } from '../../shared/format.ts';
import { figure, milliseconds, type ProcessCost, spread } from '../support/figures.ts';
import { BYTES_NEEDED, eventToUnload, floorToFree, ONE_BIG, raceToFree } from '../support/measure-guard.ts';
import { idleCosts, WINDOW_CLOSED } from '../support/measure-idle.ts';

/**
 * What the runtime costs and how fast it acts, as a process of its own over a real router. The figures
 * are printed and not judged: a busy machine may not fail a test. What is judged is that each could be
 * taken, and that what it measures took place.
 */
const ROUNDS = 20;
const KILL_ROUNDS = 5;
const IDLE_MS = 60_000;

describe('from the router’s `loading` event to our unload request', () => {
  it('where the newcomer needs the bytes', async () => {
    const times = await eventToUnload(ROUNDS, ...BYTES_NEEDED);
    expect(times).toHaveLength(ROUNDS);
    figure('loading event → unload request, bytes needed', spread(times));
  });

  it('where one big model may stay, which is first asked whether it is idle', async () => {
    const times = await eventToUnload(ROUNDS, ...ONE_BIG);
    expect(times).toHaveLength(ROUNDS);
    figure('loading event → unload request, one big model', spread(times));
  });
});

describe('from the router’s `loading` event to memory free, the loser deep in a long prompt', () => {
  it('by SIGKILL, and by the router alone', async () => {
    const { toFreeMs, toToldMs, aloneMs } = await raceToFree(KILL_ROUNDS);
    expect(toFreeMs).toHaveLength(KILL_ROUNDS);
    figure('loading event → memory free, by SIGKILL', spread(toFreeMs));
    figure('loading event → our `killed` event, memory settled', spread(toToldMs));
    figure('the router alone, stop-timeout 10 s', milliseconds(aloneMs));
  });
});

describe('from a floor that is broken to memory free', () => {
  it('where an idle big model is there to leave', async () => {
    const times = await floorToFree(2);
    expect(times).toHaveLength(2);
    figure('floor broken → memory free', spread(times));
  });
});

function memory(costs: readonly ProcessCost[]): string {
  const sum = (read: (cost: ProcessCost) => number): string =>
    formatBytes(costs.reduce((bytes, cost) => bytes + read(cost), 0));
  return `RSS ${sum((cost) => cost.residentBytes)}, PSS ${sum((cost) => cost.proportionalBytes)}`;
}

describe('the idle runtime', () => {
  it('over a router with three models, one asleep, and a reading every 500 ms', async () => {
    const [cost] = await idleCosts(IDLE_MS, [WINDOW_CLOSED]);
    if (cost === undefined) throw new Error('nothing was measured');
    const { before, after, elapsedMs } = cost;
    const share = (from: number, to?: number): string => {
      const ms = (costs: readonly ProcessCost[]): number =>
        costs.slice(from, to).reduce((sum, one) => sum + one.cpuMs, 0);
      return `${((100 * (ms(after) - ms(before))) / elapsedMs).toFixed(2)} % of a core`;
    };
    const children = after.length - 1;
    expect(children).toBeGreaterThan(0);
    figure('idle 60 s, runtime process', `${share(0, 1)}, ${memory(after.slice(0, 1))}`);
    figure(
      `idle 60 s, its ${children} child${children === 1 ? '' : 'ren'}`,
      `${share(1)}, ${memory(after.slice(1))}`,
    );
    figure('idle 60 s, all of it', `${share(0)}, ${memory(after)}`);
  });
});
