import { describe, expect, it } from 'vitest';
import type { LockTable } from '../../../electron/core/gate/kernel-locks.ts';
import { laneWatchAside } from '../../../electron/core/loop/lane-watch-aside.ts';

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
          return [];
        },
      }),
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
});
