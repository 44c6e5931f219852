import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acquireTurn } from '../../electron/core/gate/acquire.ts';
import { inspectLane } from '../../electron/core/gate/inspect.ts';
import { laneFiles } from '../../electron/core/gate/lane-files.ts';
import {
  gateIn,
  LANE_8080,
  NODE,
  nodeHolder,
  type Other,
  RACER,
  startOther,
  tempFolder,
  URL_8080,
  until,
} from '../support/gate.ts';

/** Starts waiters one after the other, each only once the one before waits. */
async function queueUp(
  root: string,
  log: string,
  waiters: readonly (readonly [string, 'interactive' | 'batch'])[],
): Promise<readonly Other[]> {
  const lane = laneFiles(root, LANE_8080);
  const started: Other[] = [];
  for (const [session, turnClass] of waiters) {
    const command = [...NODE, RACER, 'wait', URL_8080, session, turnClass, '120000', log];
    started.push(startOther(command, { env: { VRAM_LANDLORD_GATE_DIR: root } }));
    await until(() => inspectLane(lane).waiting === started.length, `${session} waits`);
  }
  return started;
}

const lines = (log: string): readonly string[] => readFileSync(log, 'utf8').trim().split('\n');

describe('processes that wait for one lane', () => {
  it('get it interactive before batch, then in the order they came', async () => {
    using folder = tempFolder('order');
    const log = join(folder.path, 'log');
    writeFileSync(log, '');
    await using holder = await nodeHolder(folder.path, 'holder');
    const waiters = await queueUp(folder.path, log, [
      ['batch-1', 'batch'],
      ['interactive-1', 'interactive'],
      ['batch-2', 'batch'],
      ['interactive-2', 'interactive'],
    ]);
    await holder.end();
    await Promise.all(waiters.map((waiter) => waiter.end()));
    expect(lines(log)).toEqual(['held interactive-1', 'held interactive-2', 'held batch-1', 'held batch-2']);
  });

  it('do not wait behind one that was killed in the queue, or one that is stopped at its head', async () => {
    using folder = tempFolder('order');
    const log = join(folder.path, 'log');
    writeFileSync(log, '');
    await using holder = await nodeHolder(folder.path, 'holder');
    const waiters = await queueUp(folder.path, log, [
      ['stopped', 'interactive'],
      ['killed', 'interactive'],
      ['third', 'interactive'],
      ['fourth', 'batch'],
    ]);
    const [stopped, killed, third, fourth] = waiters;
    try {
      stopped?.child.kill('SIGSTOP');
      await killed?.kill();
      await holder.end();
      await third?.end();
      await fourth?.end();
      expect(lines(log)).toEqual(['held third', 'held fourth']);
      // Nor does a newcomer that would not wait: the lane is free, and stays so.
      {
        using newcomer = await acquireTurn(gateIn(folder.path).gate, URL_8080, { session: 'newcomer' });
        expect(newcomer.kind).toBe('held');
      }
      stopped?.child.kill('SIGCONT');
      await stopped?.end();
      expect(lines(log).at(-1)).toBe('held stopped');
    } finally {
      await stopped?.kill();
    }
  });
});
