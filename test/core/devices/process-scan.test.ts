import { describe, expect, it } from 'vitest';
import { processScanner } from '../../../electron/core/devices/process-scan.ts';
import type { SysTree } from '../../../electron/core/devices/sysfs.ts';

const PIDS = Array.from({ length: 640 }, (_, index) => 1000 + index * 3);
const SCAN_MS = 2_000;

/** Processes without any GPU file; tells whose descriptors each scan looked at. */
function manyProcesses(): { readonly tree: SysTree; looked: number[] } {
  const seen = { looked: [] as number[] };
  const tree: SysTree = {
    readText: () => null,
    link: () => null,
    exists: () => false,
    list(path) {
      if (path === '/proc') return ['acpi', ...PIDS.map(String), 'self'];
      const pid = /^\/proc\/(\d+)\/fd$/.exec(path)?.[1];
      if (pid !== undefined) seen.looked.push(Number(pid));
      return [];
    },
  };
  return Object.assign(seen, { tree });
}

describe('processes that never opened a GPU file', () => {
  it('are looked at again within their pause, a few with each scan and never most at once', () => {
    const world = manyProcesses();
    const scanner = processScanner(world.tree, 4096, () => new Set());
    scanner.scan(0, []);
    expect(world.looked).toHaveLength(PIDS.length);
    const lastMs = new Map(PIDS.map((pid) => [pid, 0]));
    let most = 0;
    let longestMs = 0;
    // The pause is 12 s until a process is five minutes old, then 30.
    for (let nowMs = SCAN_MS; nowMs <= 1_200_000; nowMs += SCAN_MS) {
      world.looked = [];
      scanner.scan(nowMs, []);
      most = Math.max(most, world.looked.length);
      for (const pid of world.looked) {
        longestMs = Math.max(longestMs, nowMs - (lastMs.get(pid) ?? 0));
        lastMs.set(pid, nowMs);
      }
    }
    expect(most).toBeLessThan(PIDS.length / 3);
    expect(longestMs).toBeLessThanOrEqual(30_000 + SCAN_MS);
  });
});
