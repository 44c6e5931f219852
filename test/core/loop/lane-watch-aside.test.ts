import { describe, expect, it } from 'vitest';
import type { LockTable } from '../../../electron/core/gate/kernel-locks.ts';
import type { WatchedLane } from '../../../electron/core/gate/lane-watch.ts';
import { laneWatchAside } from '../../../electron/core/loop/lane-watch-aside.ts';

const LANE: WatchedLane = {
  state: {
    backend: 'router',
    configured: false,
    path: '/gates/127.0.0.1_8080.lock',
    width: 1,
    held: false,
    holders: [],
    waiting: 0,
  },
  heldSinceMs: null,
};

function table(pid: number): LockTable {
  return { locks: [{ file: '00:2a:7', pid, waiting: false }], complete: true };
}

describe('the lanes as the control loop sees them', () => {
  it('are read without waiting for the kernel: each look uses what the look before it asked for', async () => {
    const asked: ((table: LockTable | null) => void)[] = [];
    const used: (number | undefined)[] = [];
    const watch = laneWatchAside(
      () => new Promise((resolve) => asked.push(resolve)),
      () => table(1),
      (readTable) => ({
        read() {
          used.push(readTable()?.locks[0]?.pid);
          return [LANE];
        },
      }),
      () => true,
    );
    watch.read([], 0);
    watch.read([], 1000);
    // Still unanswered: not asked twice.
    expect(asked).toHaveLength(1);
    asked[0]?.(table(2));
    await Promise.resolve();
    watch.read([], 2000);
    expect(used).toEqual([1, 1, 2]);
    expect(asked).toHaveLength(2);
    asked[1]?.(null);
    await Promise.resolve();
    watch.read([], 3000);
    expect(used).toEqual([1, 1, 2, undefined]);
  });

  it('are read from no table where no lane has a file yet, and from one of now once one has', () => {
    let hasFile = false;
    let aside = 0;
    let atOnce = 0;
    const used: (number | undefined)[] = [];
    const watch = laneWatchAside(
      () => {
        aside += 1;
        return new Promise(() => {});
      },
      () => {
        atOnce += 1;
        return table(atOnce);
      },
      (readTable) => ({
        read() {
          used.push(readTable()?.locks[0]?.pid);
          return [LANE];
        },
      }),
      () => hasFile,
    );
    for (let second = 0; second < 60; second += 1) watch.read([], second * 1_000);
    // Before the first look nobody knows whether one has.
    expect([aside, atOnce]).toEqual([1, 1]);
    hasFile = true;
    watch.read([], 60_000);
    expect(atOnce).toBe(2);
    expect(used.at(-1)).toBe(2);
    watch.read([], 61_000);
    expect(atOnce).toBe(2);
  });
});
