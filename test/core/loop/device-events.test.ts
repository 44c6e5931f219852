import { describe, expect, it } from 'vitest';
import type { DeviceVerdict } from '../../../electron/core/guards/world.ts';
import { type DeviceLook, deviceEvents, type ToldDevice } from '../../../electron/core/loop/device-events.ts';
import { deviceSample } from '../../support/device-sample.ts';

const GB = 1_000_000_000;

const SAMPLE = deviceSample();

function look(
  nowMs: number,
  health: DeviceVerdict['health'],
  change: Partial<Omit<DeviceLook, 'sample'>> & { readonly freeBytes?: number; readonly error?: string } = {},
): DeviceLook {
  const { freeBytes = 10 * GB, error, ...rest } = change;
  return {
    sample: { ...SAMPLE, freeBytes, error: error ?? null },
    book: {
      deviceId: 'sim:0',
      totalBytes: 34 * GB,
      capBytes: 30 * GB,
      floorBytes: 4 * GB,
      hardFloorBytes: 2 * GB,
      bookedBytes: 0,
      outstandingBytes: 0,
      restingBytes: 0,
      driverFreeBytes: freeBytes,
      freeBytes,
      sampledAtMs: nowMs,
    },
    verdict: { deviceId: 'sim:0', health, shortBytes: null, fallingBytesPerS: null },
    evictionUnderWay: false,
    stale: error !== undefined,
    growth: null,
    nowMs,
    ...rest,
  };
}

/** Kinds and reasons told over a run of looks. */
function told(looks: readonly DeviceLook[]): readonly (readonly [number, string, string])[] {
  const lines: [number, string, string][] = [];
  let before: ToldDevice | undefined;
  for (const one of looks) {
    const result = deviceEvents(before, one);
    before = result.told;
    for (const event of result.events) lines.push([one.nowMs, event.kind, event.reason]);
  }
  return lines;
}

const kinds = (looks: readonly DeviceLook[]): readonly string[] =>
  told(looks).map(([atMs, kind]) => `${atMs} ${kind}`);

describe('a floor that is threatened', () => {
  it('is told once it has lasted 5 s, with who grew, and its end likewise (rule 13)', () => {
    const low = { freeBytes: 3.2 * GB, growth: 'firefox grew by 900 MB' };
    const lines = told([
      look(0, 'ok'),
      look(1_000, 'threatened', low),
      look(5_900, 'threatened', low),
      look(6_000, 'threatened', low),
      look(9_000, 'threatened', low),
      look(10_000, 'ok'),
      look(15_000, 'ok'),
    ]);
    expect(lines.map(([atMs, kind]) => `${atMs} ${kind}`)).toEqual([
      '0 device_found',
      '6000 floor_threatened',
      '15000 floor_restored',
    ]);
    expect(lines[1]?.[2]).toBe(
      "The desktop's floor is threatened: 3.2 GB is free, the floor is 4.0 GB. firefox grew by 900 MB.",
    );
  });

  it('is not told for the spike of a window being resized', () => {
    expect(
      kinds([
        look(0, 'ok'),
        look(1_000, 'threatened'),
        look(4_000, 'ok'),
        look(5_000, 'threatened'),
        look(9_000, 'ok'),
      ]),
    ).toEqual(['0 device_found']);
  });

  it('is told at once when it is critical, and not again while it recovers by half', () => {
    expect(
      kinds([
        look(0, 'ok'),
        look(500, 'critical', { freeBytes: GB }),
        look(1_000, 'critical', { freeBytes: GB }),
        look(2_000, 'threatened', { freeBytes: 3 * GB }),
        look(8_000, 'threatened', { freeBytes: 3 * GB }),
        look(9_000, 'ok'),
        look(15_000, 'ok'),
      ]),
    ).toEqual(['0 device_found', '500 floor_threatened', '15000 floor_restored']);
  });
});

describe('the driver moving memory out', () => {
  it('is told at its start, and at its end once it has been quiet for 5 s', () => {
    const busy = { evictionUnderWay: true };
    expect(
      kinds([
        look(0, 'ok'),
        look(500, 'ok', busy),
        look(1_000, 'ok', busy),
        look(2_000, 'ok'),
        look(4_000, 'ok', busy),
        look(5_000, 'ok'),
        look(9_900, 'ok'),
        look(10_000, 'ok'),
      ]),
    ).toEqual(['0 device_found', '500 driver_eviction', '10000 driver_eviction_over']);
  });

  it('ends nothing where the driver does not tell', () => {
    expect(
      kinds([look(0, 'ok', { evictionUnderWay: null }), look(9_000, 'ok', { evictionUnderWay: null })]),
    ).toEqual(['0 device_found']);
  });
});

describe('a device that can no longer be read', () => {
  it('is not told for one old reading, as after a stop of this very process', () => {
    const old = (nowMs: number): DeviceLook => look(nowMs, 'stale', { stale: true });
    expect(kinds([look(0, 'ok'), old(6_000), look(6_100, 'ok'), old(9_000), look(9_100, 'ok')])).toEqual([
      '0 device_found',
    ]);
    const late = [look(0, 'ok'), old(6_000), old(6_500), old(7_100), old(8_000)];
    expect(kinds(late)).toEqual(['0 device_found', '7100 device_lost']);
    expect(told(late)[1]?.[2]).toMatch(/^Card was last read [\d.]+ s ago\. No guard acts on it until/);
  });

  it('is told once, and when it is back', () => {
    const lines = told([
      look(0, 'ok'),
      look(2_000, 'stale', { error: 'Permission denied.' }),
      look(3_000, 'stale', { error: 'Permission denied.' }),
      look(4_000, 'ok'),
    ]);
    expect(lines.map(([, kind]) => kind)).toEqual(['device_found', 'device_lost', 'device_found']);
    expect(lines[1]?.[2]).toBe(
      "Card can't be read: Permission denied. No guard acts on it until it can be read.",
    );
  });
});
