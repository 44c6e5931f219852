import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { otherHolders } from '../../../electron/core/loop/other-holders.ts';

function use(pid: number, name: string, bytes: number | null, deviceId = 'sim:0'): ProcessMemory {
  return {
    pid,
    startTimeTicks: 1,
    name,
    deviceId,
    bytes,
    gttBytes: null,
    type: null,
    source: 'drm-fdinfo',
  };
}

const NONE: ReadonlySet<number> = new Set();
const bytesOf = (
  processes: readonly ProcessMemory[],
  modelPids = NONE,
  known: ReadonlyMap<number, number> | null = null,
  ownPid: number | null = null,
) => otherHolders(processes, 'sim:0', modelPids, known, ownPid)?.bytes ?? null;

describe('what others hold while a model loads', () => {
  it('is the desktop’s on that device, not the model’s own, whatever its process is called', () => {
    const processes = [
      use(1, 'kwin_wayland', 300),
      use(2, 'my-server', 5_000),
      use(3, 'firefox', 200, 'pci:1'),
    ];
    expect(bytesOf(processes, new Set([2]))).toBe(300);
  });

  it('is no server’s, which may be what loads', () => {
    expect(bytesOf([use(1, 'kwin_wayland', 300), use(2, 'ollama', 5_000), use(3, 'llama-server', 9)])).toBe(
      300,
    );
  });

  it('is a job’s that was there before, not of one that has come since', () => {
    const processes = [use(1, 'kwin_wayland', 300), use(2, 'python3', 1_000)];
    expect(bytesOf(processes)).toBe(1_300);
    expect(
      bytesOf(
        processes,
        NONE,
        new Map([
          [1, 300],
          [2, 1_000],
        ]),
      ),
    ).toBe(1_300);
    expect(bytesOf(processes, NONE, new Map([[1, 300]]))).toBe(300);
  });

  it('is what it was of one that is proven to be another model’s only later, and not so of the measured one', () => {
    const processes = [use(1, 'kwin_wayland', 300), use(2, 'my-server', 5_000)];
    const known = new Map([
      [1, 300],
      [2, 4_900],
    ]);
    expect(bytesOf(processes, new Set([2]), known)).toBe(5_200);
    expect(bytesOf(processes, new Set([2]), known, 2)).toBe(300);
  });

  it('is unknown where the driver names nobody’s bytes (rule 5)', () => {
    expect(bytesOf([])).toBeNull();
    expect(bytesOf([use(1, 'kwin_wayland', null), use(2, 'firefox', 5, 'pci:1')])).toBeNull();
  });
});
