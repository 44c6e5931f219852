/** A device's history as stacked bands for a chart, with what happened as marks. Pure. */
import { type LandlordEvent, type Severity, severityOf } from '../../shared/events.ts';
import type { DeviceHistory, History } from '../../shared/questions.ts';
import { strings } from '../strings.ts';
import { shortName } from './figures.ts';

export interface Band {
  readonly id: string;
  readonly name: string;
  readonly tone: string;
  readonly bytes: readonly (number | null)[];
  /** Its upper edge, with all below it. */
  readonly edge: readonly (number | null)[];
  readonly peakBytes: number | null;
}

export interface ChartMark {
  readonly id: number;
  readonly atMs: number;
  readonly kind: string;
  readonly reason: string;
  readonly severity: Severity;
}

export interface Chart {
  readonly atMs: readonly number[];
  /** From the bottom up. */
  readonly bands: readonly Band[];
  readonly totalBytes: number | null;
  /** Memory in use above this breaks the floor; null: not known, or of no use here. */
  readonly limitBytes: number | null;
  readonly freeBytes: readonly (number | null)[];
  readonly marks: readonly ChartMark[];
  readonly fromMs: number;
  readonly toMs: number;
}

const words = strings.history;
/** Less is a rounding of readings taken at different moments. */
const LEAST_OTHER_SHARE = 0.005;

export function chartOf(
  history: History,
  deviceId: string,
  show: 'all' | 'desktop',
  tones: (modelId: string) => string,
): Chart | null {
  const device = history.devices.find((one) => one.deviceId === deviceId);
  if (device === undefined || device.atMs.length === 0) return null;
  const totalBytes = device.totalBytes.findLast((bytes) => bytes !== null) ?? null;
  const floorBytes = history.floors.find((one) => one.deviceId === deviceId)?.presentBytes ?? null;
  const rows = rowsOf(device, totalBytes, tones).filter((row) => show === 'all' || row.tone === 'desktop');
  return {
    atMs: device.atMs,
    bands: stacked(rows),
    totalBytes,
    limitBytes: show === 'all' && totalBytes !== null && floorBytes !== null ? totalBytes - floorBytes : null,
    freeBytes: device.freeBytes,
    marks: history.events
      .filter((event) => isMark(event, deviceId))
      .map((event) => ({
        id: event.id,
        atMs: Date.parse(event.at),
        kind: strings.events.kind[event.kind] ?? event.kind,
        reason: event.reason,
        severity: severityOf(event.kind),
      })),
    fromMs: history.fromMs,
    toMs: history.toMs,
  };
}

/** What a person would look for in a chart of memory; the list of events has everything. */
function isMark(event: LandlordEvent, deviceId: string): boolean {
  const worth = severityOf(event.kind) !== 'info' || event.kind === 'loaded' || event.kind === 'unloaded';
  return worth && (event.deviceId === undefined || event.deviceId === deviceId);
}

type Row = Pick<Band, 'id' | 'name' | 'tone' | 'bytes'>;

function rowsOf(
  device: DeviceHistory,
  totalBytes: number | null,
  tones: (modelId: string) => string,
): readonly Row[] {
  const rows = device.tenants.map(({ id, bytes }) => ({ id, ...lookOf(id, tones), bytes }));
  const other = device.usedBytes.map((used, at) => {
    if (used === null) return null;
    const named = rows.reduce((sum, row) => sum + (row.bytes[at] ?? 0), 0);
    return Math.max(0, used - named);
  });
  const worth = other.some((bytes) => (bytes ?? 0) > LEAST_OTHER_SHARE * (totalBytes ?? 0));
  return worth ? [...rows, { id: 'other', name: words.unattributed, tone: 'other', bytes: other }] : rows;
}

function lookOf(id: string, tones: (modelId: string) => string): { name: string; tone: string } {
  if (id.startsWith('desktop@')) return { name: strings.device.desktop, tone: 'desktop' };
  if (id === 'rest') return { name: words.rest, tone: 'other' };
  const kind = /^(foreign|reserved|agent|desktop):(.+)@[^@]*$/.exec(id);
  if (kind !== null) return { name: kind[2] ?? id, tone: kind[1] ?? 'other' };
  if (/^[A-Za-z0-9][\w.-]{0,63}\/./.test(id)) return { name: shortName(id), tone: tones(id) };
  return { name: id, tone: 'reserved' };
}

/** An unknown figure adds nothing, and leaves no edge of its own. */
function stacked(rows: readonly Row[]): readonly Band[] {
  let below: readonly number[] = rows[0]?.bytes.map(() => 0) ?? [];
  return rows.map((row) => {
    const edge = row.bytes.map((bytes, at) => (bytes === null ? null : (below[at] ?? 0) + bytes));
    below = row.bytes.map((bytes, at) => (below[at] ?? 0) + (bytes ?? 0));
    const known = row.bytes.filter((bytes) => bytes !== null);
    return { ...row, edge, peakBytes: known.length === 0 ? null : Math.max(...known) };
  });
}

/** The reading nearest to a time; -1: there is none. */
export function readingAt(chart: Chart, atMs: number): number {
  let best = -1;
  for (const [index, at] of chart.atMs.entries())
    if (best < 0 || Math.abs(at - atMs) < Math.abs((chart.atMs[best] ?? 0) - atMs)) best = index;
  return best;
}

/** What happened within a reading's own time. */
export function marksNear(chart: Chart, index: number, stepMs: number): readonly ChartMark[] {
  const at = chart.atMs[index];
  return at === undefined ? [] : chart.marks.filter((mark) => Math.abs(mark.atMs - at) <= stepMs);
}
