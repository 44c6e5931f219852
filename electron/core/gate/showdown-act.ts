import { statSync } from 'node:fs';
import type { Gate } from './gate.ts';
import { slotFiles } from './lane-files.ts';

/**
 * What one process of the showdown does: tries once for the lane, says on one line of JSON what it
 * got and which file it locked, and holds it until its input ends.
 */
export function act(gate: Gate, args: readonly string[]): void {
  const [url = '', session = '', turnClass = 'interactive'] = args;
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
    })}\n`,
  );
  process.stdin.resume();
  process.stdin.once('end', () => {
    turn[Symbol.dispose]();
    process.exit(0);
  });
}
