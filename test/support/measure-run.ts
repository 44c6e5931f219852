/**
 * `node measure-run.ts guard|idle [--short]`: what the tests measure, once more for `npm run bench`, as one
 * line of JSON. A program of its own, since the bench may not depend on the tests.
 */
import { BYTES_NEEDED, eventToUnload, floorToFree, ONE_BIG, raceToFree } from './measure-guard.ts';
import { FIFTY_AGENTS, idleCosts, WINDOW_CLOSED, WINDOW_OPEN } from './measure-idle.ts';

const short = process.argv.includes('--short');
const what = process.argv[2];

async function guard() {
  return {
    bytesNeededMs: await eventToUnload(short ? 2 : 20, ...BYTES_NEEDED),
    oneBigMs: await eventToUnload(short ? 2 : 20, ...ONE_BIG),
    race: await raceToFree(short ? 1 : 5),
    floorMs: await floorToFree(short ? 1 : 10),
  };
}

if (what !== 'guard' && what !== 'idle') throw new Error(`guard or idle, not ${what}`);
const figures =
  what === 'guard'
    ? await guard()
    : await idleCosts(short ? 5_000 : 60_000, [WINDOW_CLOSED, WINDOW_OPEN, FIFTY_AGENTS]);
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
