import { flushCompileCache } from 'node:module';
import { SqliteStore } from '../../../electron/core/events/sqlite-store.ts';

/** A process that appends events as fast as it can and prints the id of each committed one, until it is killed. */
// Killed processes save no compile cache, and every round starts anew.
flushCompileCache();
const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: FILE');

const store = new SqliteStore({
  file,
  now: Date.now,
  answerMs: 60_000,
  openMs: 60_000,
  silentMs: 60_000,
  onTrouble: (event) => process.stdout.write(`trouble ${event.reason}\n`),
});
for (let count = 0; ; count += 1) {
  const several = Array.from({ length: 1 + (count % 3) }, (_, index) =>
    store.append({ kind: 'evicted', reason: `event ${count}.${index}`, numbers: { count } }, Date.now()),
  );
  for (const event of await Promise.all(several)) process.stdout.write(`${event.id}\n`);
}
