import { EVENT_KINDS, type EventKind } from '../../../shared/events.ts';
import type { DeviceState, Health, LandlordState, ModelStatus } from '../../../shared/state.ts';
import { prometheus } from './prometheus.ts';

/** One line of a metric: its labels and value; a null value leaves the line out. */
interface Point {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | null;
}

interface Family {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly points: readonly Point[];
}

/** Prometheus text format 0.0.4, which prom-client writes. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const DEVICE_GAUGES: readonly (readonly [string, string, (device: DeviceState) => number | null])[] = [
  ['total_bytes', 'Memory of the device.', (device) => device.totalBytes],
  ['used_bytes', 'Memory in use by anyone.', (device) => device.usedBytes],
  ['free_bytes', 'Memory that is free.', (device) => device.freeBytes],
  ['gtt_used_bytes', 'System memory the driver uses for the device.', (device) => device.gttUsedBytes],
  [
    'cap_bytes',
    'The most that models, agents and reserved jobs may book together.',
    (device) => device.capBytes,
  ],
  ['booked_bytes', 'Memory booked by models, agents and reserved jobs.', (device) => device.bookedBytes],
  ['floor_bytes', 'Memory kept free for the desktop.', (device) => device.floorBytes],
  ['hard_floor_bytes', 'The floor for a big model that is alone.', (device) => device.hardFloorBytes],
  ['outstanding_bytes', 'Booked by loads in flight and not seen yet.', (device) => device.outstandingBytes],
  [
    'busy_ratio',
    'Share of time the device is busy, 0 to 1.',
    (device) => (device.busyPercent === null ? null : device.busyPercent / 100),
  ],
];

const HEALTHS: readonly Health[] = ['ok', 'threatened', 'critical', 'stale'];
const STATUSES: readonly ModelStatus[] = ['unloaded', 'loading', 'loaded', 'sleeping', 'stopping', 'failed'];

/** The state for Prometheus: an unknown value has no line, it is never 0. */
export async function renderMetrics(
  state: LandlordState,
  eventCounts: ReadonlyMap<EventKind, number>,
): Promise<string> {
  const { Registry, Counter, Gauge } = await prometheus();
  const registry = new Registry();
  for (const { name, type, help, points } of families(state, eventCounts)) {
    const known = points.flatMap(({ labels, value }) =>
      value === null || !Number.isFinite(value) ? [] : [{ labels, value }],
    );
    if (known.length === 0) continue;
    const labelNames = Object.keys(known[0]?.labels ?? {});
    const options = { name, help, labelNames, registers: [registry] };
    const counter = type === 'counter' ? new Counter(options) : null;
    const gauge = type === 'gauge' ? new Gauge(options) : null;
    for (const { labels, value } of known) {
      counter?.inc(labels, value);
      gauge?.set(labels, value);
    }
  }
  return registry.metrics();
}

function families(state: LandlordState, eventCounts: ReadonlyMap<EventKind, number>): readonly Family[] {
  const device = (one: DeviceState): Record<string, string> => ({
    device: one.id,
    kind: one.kind,
    name: one.name,
  });
  return [
    metric('landlord_info', 'gauge', 'The running version.', [
      { labels: { version: state.version, guards: state.policy.guards }, value: 1 },
    ]),
    ...DEVICE_GAUGES.map(([name, help, read]) =>
      metric(
        `landlord_device_${name}`,
        'gauge',
        help,
        state.devices.map((one) => ({ labels: device(one), value: read(one) })),
      ),
    ),
    metric(
      'landlord_device_health',
      'gauge',
      '1 for the state of health the device is in.',
      state.devices.flatMap((one) =>
        HEALTHS.map((health) => ({
          labels: { device: one.id, health },
          value: one.health === health ? 1 : 0,
        })),
      ),
    ),
    metric(
      'landlord_tenant_bytes',
      'gauge',
      'Measured memory of each holder.',
      state.tenants.map((tenant) => ({
        labels: { device: tenant.deviceId, tenant: tenant.id, kind: tenant.kind, name: tenant.name },
        value: tenant.measuredBytes,
      })),
    ),
    metric(
      'landlord_models',
      'gauge',
      'Models in each status.',
      STATUSES.map((status) => ({
        labels: { status },
        value: state.models.filter((model) => model.status === status).length,
      })),
    ),
    metric(
      'landlord_model_busy',
      'gauge',
      '1 while the model serves a request.',
      state.models.map((model) => ({
        labels: { model: model.id },
        value: model.busy === null ? null : Number(model.busy),
      })),
    ),
    metric(
      'landlord_backend_up',
      'gauge',
      '1 while the backend answers.',
      state.backends.map((backend) => ({
        labels: { backend: backend.name },
        value: backend.status === 'unknown' ? null : Number(backend.status === 'up'),
      })),
    ),
    metric('landlord_asleep', 'gauge', '1 while big models are asleep.', [
      { labels: {}, value: state.asleep === null ? 0 : 1 },
    ]),
    metric(
      'landlord_events_total',
      'counter',
      'Events since the runtime started.',
      EVENT_KINDS.map((kind) => ({ labels: { kind }, value: eventCounts.get(kind) ?? 0 })),
    ),
  ];
}

function metric(name: string, type: Family['type'], help: string, points: readonly Point[]): Family {
  return { name, type, help, points };
}
