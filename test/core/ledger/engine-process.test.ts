import { expect, it } from 'vitest';
import { attribute } from '../../../electron/core/ledger/attribution.ts';
import type { Booking } from '../../../electron/core/ledger/booking.ts';
import { deviceSample } from '../../support/device-sample.ts';

const GB = 1_000_000_000;
const CARD = 'pci:0000:03:00.0';
const sample = deviceSample({
  id: CARD,
  kind: 'nvidia',
  name: 'a card',
  drivesDisplay: null,
  totalBytes: 24 * GB,
  usedBytes: 10 * GB,
  freeBytes: 14 * GB,
  gttUsedBytes: null,
  source: 'nvml',
  takenAtMs: 1,
});
const line = (id: string, bytes: number): Booking => ({
  id,
  kind: 'agent',
  name: id,
  deviceId: CARD,
  predictedBytes: bytes,
  measuredBytes: bytes,
  state: 'committed',
  sinceMs: 0,
  shared: null,
});
const row = (pid: number, name: string, bytes: number) =>
  ({
    pid,
    startTimeTicks: pid,
    name,
    deviceId: CARD,
    bytes,
    gttBytes: null,
    type: 'C',
    source: 'nvml',
  }) as const;

it('counts the process that agents share once: theirs by the engine’s account, the rest as the engine’s own', () => {
  const tenants = attribute({
    sample,
    processes: [row(7, 'node', 5 * GB), row(8, 'comfyui', 2 * GB)],
    models: [
      { id: 'embedded/chat', deviceId: CARD, processes: [], predictedBytes: null, measuredBytes: 1 * GB },
    ],
    bookings: [
      line('agent-weights:x', 2 * GB),
      line('agent:smol', 1 * GB),
      { ...line('agent-engine:x', 0), measuredBytes: null },
    ],
    engine: {
      processes: [{ pid: 7, startTimeTicks: 7 }],
      ownLine: 'agent-engine:',
      holds: (id) => id.startsWith('agent') || id === 'embedded/chat',
    },
  });
  const bytes = Object.fromEntries(tenants.map((tenant) => [tenant.id, tenant.measuredBytes]));
  expect(bytes).toMatchObject({
    'embedded/chat': 1 * GB,
    'agent-weights:x': 2 * GB,
    'agent:smol': 1 * GB,
    'agent-engine:x': 1 * GB,
    [`desktop@${CARD}`]: 3 * GB,
  });
  // Nobody is told of a foreign `node`.
  expect(tenants.filter((tenant) => tenant.kind === 'foreign').map((tenant) => tenant.name)).toEqual([
    'comfyui',
  ]);
});
