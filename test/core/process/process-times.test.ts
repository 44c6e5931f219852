import { describe, expect, it } from 'vitest';
import { processTimes } from '../../../electron/core/process/process-times.ts';
import { procfs } from '../../../electron/core/process/procfs.ts';

describe('process times', () => {
  it('are those of /proc for a process that lives, and nothing for one that does not', async () => {
    const [own] = procfs().facts([process.pid]);
    const used = process.cpuUsage();
    const [times, ...rest] = await processTimes([process.pid, 2 ** 22 + 1]);
    expect(rest).toEqual([]);
    expect(times?.startTimeTicks).toBe(own?.startTimeTicks);
    const wantedMs = (used.user + used.system) / 1000;
    expect(Math.abs((times?.cpuMs ?? 0) - wantedMs)).toBeLessThan(1_000);
    expect(times?.cpuMs ?? 0).toBeGreaterThan(wantedMs / 2);
  });

  it('see a first thread that works for far less than a tick of 10 ms', async () => {
    const readMs = async (): Promise<number> => (await processTimes([process.pid]))[0]?.firstThreadMs ?? 0;
    const fromMs = await readMs();
    const endAtMs = performance.now() + 4;
    while (performance.now() < endAtMs);
    const ranMs = (await readMs()) - fromMs;
    expect(ranMs).toBeGreaterThan(0);
    expect(ranMs % 10).not.toBe(0);
  });
});
