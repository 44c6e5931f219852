import type { LandlordEvent } from '../../shared/events.ts';
import { formatBytes, formatDuration } from '../../shared/format.ts';
import type {
  BackendState,
  DeviceState,
  FallbackState,
  Health,
  LandlordState,
  TenantState,
} from '../../shared/state.ts';
import { agentLines } from './agent-text.ts';
import { budgetCells, drawBar, legend } from './budget-bar.ts';
import { eventLine } from './event-text.ts';
import { laneLines } from './lane-text.ts';
import { modelLines } from './model-text.ts';
import { columns, paint, plain, type Terminal, type Tone } from './terminal.ts';

type Look = Pick<Terminal, 'color' | 'unicode' | 'columns'>;

/** What `landlord status` shows: what to know first, then devices, models, backends, latest events. */
export function statusText(
  state: LandlordState,
  events: readonly LandlordEvent[],
  nowMs: number,
  look: Look,
): string {
  const sections = [
    [paint(look, 'bold', `VRAM Landlord ${plain(state.version)}`) + plain(headline(state, nowMs))],
    state.notices.map((notice) => paint(look, noticeTone(notice.severity), plain(notice.text))),
    (state.offers ?? []).map((offer) =>
      paint(look, 'warning', plain(`${offer.text} \`landlord accept "${offer.id}"\`: ${offer.label}.`)),
    ),
    ...state.devices.map((device) => deviceLines(device, state.tenants, look)),
    state.devices.length === 0 ? ['No device has been read yet.'] : [],
    section('Models', modelLines(state.models, nowMs, look), look),
    section('Agents', agentLines(state.agents, nowMs, look), look),
    section('Lanes', laneLines(state.lanes, nowMs, look), look),
    section('Backends', backendLines(state.backends, look), look),
    section('Fallbacks', fallbackLines(state.fallbacks ?? [], look), look),
    section(
      'Latest events',
      events.map((event) => eventLine(event, nowMs, look)),
      look,
    ),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function headline(state: LandlordState, nowMs: number): string {
  const { policy, asleep } = state;
  const until = policy.guardsPausedUntil;
  const pause = until === null ? '' : ` for ${formatDuration(Date.parse(until) - nowMs)}`;
  const parts = [`guards ${policy.guards}${policy.guards === 'paused' ? pause : ''}`];
  if (asleep !== null) {
    const end =
      asleep.until === null ? 'until woken' : `for ${formatDuration(Date.parse(asleep.until) - nowMs)}`;
    parts.push(`big models asleep ${end}`);
  }
  if (state.restorable.length > 0) {
    parts.push(`\`landlord restore\` would load ${state.restorable.join(', ')} again`);
  }
  return parts.map((part) => ` · ${part}`).join('');
}

function deviceLines(device: DeviceState, allTenants: readonly TenantState[], look: Look): string[] {
  const tenants = allTenants.filter((tenant) => tenant.deviceId === device.id);
  const cells = budgetCells(device, tenants, Math.max(20, Math.min(60, look.columns - 6)));
  const bar =
    cells === null
      ? ['How much of it is in use can not be told now.']
      : [drawBar(cells, look.unicode), paint(look, 'quiet', legend(cells, look.unicode))];
  const use = `${formatBytes(device.usedBytes)} of ${formatBytes(device.totalBytes)} used, ${formatBytes(device.freeBytes)} free`;
  const rules = `floor ${formatBytes(device.floorBytes)} · cap ${formatBytes(device.capBytes)}, ${formatBytes(device.bookedBytes)} of it booked`;
  // Of loads in flight, and of jobs that have booked ahead.
  const coming =
    device.outstandingBytes > 0 ? [`${formatBytes(device.outstandingBytes)} booked and not taken yet`] : [];
  const screen = device.drivesDisplay === true ? ', drives the display' : '';
  return [
    `${paint(look, 'bold', plain(device.name))} (${plain(device.id)}${screen}) · ${healthText(device.health, look)}`,
    ...[
      ...bar,
      use,
      rules,
      ...coming,
      ...tenantLines(tenants),
      ...device.notes.map((note) => paint(look, 'quiet', plain(note))),
    ].map((line) => `  ${line}`),
  ];
}

function tenantLines(tenants: readonly TenantState[]): string[] {
  const sorted = tenants.toSorted((a, b) => (b.measuredBytes ?? 0) - (a.measuredBytes ?? 0));
  return columns(
    sorted.map((tenant) => {
      const parts = (tenant.parts ?? [])
        .slice(0, 4)
        .map((part) => `${plain(part.name)} ${formatBytes(part.bytes)}`);
      const { usual } = tenant;
      const levels =
        usual === undefined
          ? []
          : [`usually ${formatBytes(usual.idleBytes)} idle, ${formatBytes(usual.busyBytes)} in use`];
      return [tenantBytes(tenant), tenant.kind, plain(tenant.name), [...parts, ...levels].join(', ')];
    }),
    [0],
  );
}

function tenantBytes(tenant: TenantState): string {
  if (tenant.measuredBytes !== null) return formatBytes(tenant.measuredBytes);
  return tenant.predictedBytes === null ? 'unknown' : `~${formatBytes(tenant.predictedBytes)}`;
}

function backendLines(backends: readonly BackendState[], look: Look): string[] {
  return columns(
    backends.map((backend) => [
      plain(backend.name),
      plain(backend.kind),
      plain(backend.url),
      paint(
        look,
        backend.status === 'up' ? 'good' : backend.status === 'down' ? 'bad' : 'quiet',
        backend.status,
      ),
      backend.guards === 'observe' ? 'observed only' : 'guarded',
      backend.error === null ? '' : plain(backend.error),
    ]),
  );
}

function fallbackLines(fallbacks: readonly FallbackState[], look: Look): string[] {
  return columns(
    fallbacks.map((one) => [
      plain(one.name),
      plain(one.url),
      paint(look, one.status === 'down' ? 'bad' : 'quiet', one.status),
      one.error === null ? '' : plain(one.error),
    ]),
  );
}

function section(title: string, lines: readonly string[], look: Look): string[] {
  return lines.length === 0 ? [] : [paint(look, 'bold', title), ...lines.map((line) => `  ${line}`)];
}

function healthText(health: Health, look: Look): string {
  const tones: Readonly<Record<Health, Tone>> = {
    ok: 'good',
    threatened: 'warning',
    critical: 'bad',
    stale: 'warning',
  };
  return paint(look, tones[health], health);
}

function noticeTone(severity: 'info' | 'warning' | 'error'): Tone {
  return severity === 'error' ? 'bad' : severity === 'warning' ? 'warning' : 'quiet';
}
