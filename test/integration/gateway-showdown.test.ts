import { expect, it } from 'vitest';
import { showdown, showdownFaults } from '../../build/bench/showdown.ts';

/** The short form: until every actor has met every other. Ten minutes: `npm run bench -- --only showdown --minutes 10`. */
const ENOUGH_TURNS = 3;

it('two sessions, a cron turn and a batch indexer: one at a time in the lane, nobody starves, every deflection with its reason and its return', async () => {
  const result = await showdown({
    lastsMs: 150_000,
    isEnough: (actors, returns) =>
      returns > 0 && actors.length === 4 && actors.every((actor) => actor.local >= ENOUGH_TURNS),
  });
  expect(showdownFaults(result)).toEqual([]);
});
