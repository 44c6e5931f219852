/**
 * The tray's figures in words: what is free, and what is going on. Pure.
 *
 * The tooltip has the exact figures; the menu has steps of half a gigabyte, because each change of a
 * menu rebuilds it, and a person may have it open (design §6).
 */
import { formatBytes } from './format.ts';
import type { DeviceState, LandlordState, ModelState } from './state.ts';
import { isBusy, type ModelUser, shortModel, userOf } from './tray-agents.ts';

const STEP_BYTES = 500_000_000;
/** An age in the menu moves in steps of ten seconds, from a minute on in minutes. */
const AGE_STEP_MS = 10_000;

/** `exact` for the tooltip, `steps` for the menu. */
export type Figures = 'exact' | 'steps';

/** `4 GB`, `6.1 GB`, `unknown`. */
export function plainBytes(bytes: number | null): string {
  return formatBytes(bytes).replace('.0 ', ' ');
}

/** `6 GB`, `6.5 GB`, `under 0.5 GB`; rounded down, so that no more is promised than there is. */
export function steppedBytes(bytes: number | null): string {
  if (bytes === null) return 'unknown';
  if (bytes < STEP_BYTES) return 'under 0.5 GB';
  return plainBytes(Math.floor(bytes / STEP_BYTES) * STEP_BYTES);
}

/** What a model holds, to the nearest step: it breathes by some megabytes, and the menu is not to. */
export function heldBytes(bytes: number): string {
  const stepBytes = bytes < 2 * STEP_BYTES ? 100_000_000 : STEP_BYTES;
  return plainBytes(Math.max(1, Math.round(bytes / stepBytes)) * stepBytes);
}

/** `41 s` or, in steps, `40 s`; `3 min`, `2 h`. */
export function ageText(ageMs: number, figures: Figures): string {
  const ms = Math.max(0, ageMs);
  if (ms < 60_000) {
    const stepMs = figures === 'exact' ? 1000 : AGE_STEP_MS;
    return `${(Math.floor(ms / stepMs) * stepMs) / 1000} s`;
  }
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
}

/** `HH:MM` in the machine's time zone, on another day with its date; '' for no time. */
export function clockText(iso: string, nowMs: number): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const pad = (value: number): string => String(value).padStart(2, '0');
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  return at.toDateString() === new Date(nowMs).toDateString()
    ? time
    : `${pad(at.getDate())}.${pad(at.getMonth() + 1)}. ${time}`;
}

/** `6.1 GB free, floor 4 GB`; what is wrong first. */
export function deviceLine(device: DeviceState, named: boolean, figures: Figures): string {
  const who = named ? `${device.name}: ` : '';
  const amount = figures === 'exact' ? plainBytes : steppedBytes;
  const { freeBytes, floorBytes } = device;
  const floor = floorBytes === null ? '' : `, floor ${plainBytes(floorBytes)}`;
  if (device.health === 'stale' || freeBytes === null) {
    return `${who === '' ? `${device.name}: ` : who}no reading to trust, so the guards wait`;
  }
  const free = `${amount(freeBytes)} free`;
  switch (device.health) {
    case 'critical':
      return device.evictionUnderWay === true
        ? `${who}the driver is moving memory out; ${free}${floor}`
        : `${who}short of memory: ${free}${floor}`;
    case 'threatened':
      return floorBytes !== null && freeBytes >= floorBytes
        ? `${who}${free} and falling${floor}`
        : `${who}${free}, under the floor of ${plainBytes(floorBytes)}`;
    case 'ok':
      return `${who}${free}${floor}`;
  }
}

/** Models that are doing something, worst news for memory first: loading, leaving, busy. */
export function activityLines(
  state: Pick<LandlordState, 'models' | 'lanes' | 'agents'>,
  nowMs: number,
  figures: Figures,
): readonly string[] {
  const rank = { loading: 0, stopping: 1, loaded: 2, failed: 3, sleeping: 3, unloaded: 3 } as const;
  return state.models
    .filter((model) => model.status === 'loading' || model.status === 'stopping' || isBusy(model))
    .toSorted((a, b) => rank[a.status] - rank[b.status] || (a.id < b.id ? -1 : 1))
    .map((model) => `${shortModel(model.id)}: ${doing(model, userOf(model, state), nowMs, figures)}`);
}

function doing(model: ModelState, user: ModelUser | null, nowMs: number, figures: Figures): string {
  if (model.status === 'stopping') return 'leaving';
  if (model.status === 'loading') {
    if (model.loadProgress === null) return 'loading';
    // Tenths: a load of a minute would rebuild the menu sixty times.
    const share = figures === 'exact' ? model.loadProgress * 100 : Math.floor(model.loadProgress * 10) * 10;
    return `loading, ${Math.round(share)} %`;
  }
  const parts = ['busy'];
  if (user?.name != null) parts.push(user.name);
  const sinceMs = user?.since == null ? Number.NaN : Date.parse(user.since);
  if (!Number.isNaN(sinceMs)) parts.push(ageText(nowMs - sinceMs, figures));
  return parts.join(', ');
}

/** The devices a person cares about, at most four; plain system memory only where there is no other. */
export function shownDevices(state: Pick<LandlordState, 'devices'>): readonly DeviceState[] {
  const cards = state.devices.filter((device) => device.kind !== 'system');
  return (cards.length > 0 ? cards : state.devices).slice(0, 4);
}
