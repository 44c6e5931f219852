/**
 * One process of the showdown: `node showdown-actor.ts URL SESSION CLASS`. Tries once for the lane,
 * says on one line of JSON what it got and which file it locked, and holds it until its input ends.
 */
import { statSync } from 'node:fs';
import { createGate } from './gate.ts';
import { slotFiles } from './lane-files.ts';

const [url = '', session = '', turnClass = 'interactive'] = process.argv.slice(2);
const gate = createGate();
const turn = gate.tryTurn(url, {
  session,
  class: turnClass === 'batch' ? 'batch' : 'interactive',
  onReport: () => undefined,
});
const plan = gate.plan(url, null);
const lane = plan.kind === 'lanes' ? plan.lanes.at(-1) : undefined;
const path = lane === undefined ? null : slotFiles(lane, 0).lock;
process.stdout.write(
  `${JSON.stringify({
    kind: turn.kind,
    message: 'message' in turn ? turn.message : null,
    root: gate.root(),
    path,
    inode: path === null ? null : (statSync(path, { throwIfNoEntry: false })?.ino ?? null),
    pid: process.pid,
  })}\n`,
);
process.stdin.resume();
process.stdin.once('end', () => {
  turn[Symbol.dispose]();
  process.exit(0);
});
