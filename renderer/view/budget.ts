/**
 * The budget bar of a device: who holds its memory, from left to right, and where the limits lie.
 *
 *   desktop │ foreign │ not attributed │ reserved │ models │ agents │ (loading: solid, then hatched) │ free
 *                                      └──────── what the cap counts ───────┘            floor ┘
 *
 * Pure. Positions are percent of the device's total, with two decimals; together the segments and
 * the free rest are exactly 100.
 */
import type { DeviceState, LandlordState, ModelState, TenantState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { bytesText, shortName } from './figures.ts';
import { shown } from './shown.ts';
import { toneOf } from './tones.ts';

export interface Segment {
  readonly key: string;
  readonly tone: string;
  /** Booked and not yet seen in use. */
  readonly hatched: boolean;
  readonly label: string;
  readonly bytesText: string;
  readonly fromPercent: number;
  readonly widthPercent: number;
}

export interface Mark {
  readonly atPercent: number;
  readonly label: string;
}

export interface BudgetKey {
  readonly key: string;
  readonly tone: string;
  readonly hatched: boolean;
  readonly name: string;
  readonly bytesText: string;
  readonly detail: string | null;
}

export interface Budget {
  readonly segments: readonly Segment[];
  readonly freePercent: number;
  /** Left of it memory may be used, right of it stays free. */
  readonly floor: Mark | null;
  /** How far models may reach, counted from where they begin; at the right end when it can't bind. */
  readonly cap: Mark | null;
  readonly keys: readonly BudgetKey[];
  /** More is booked than there is, in words; null otherwise. */
  readonly over: string | null;
}

interface Part {
  readonly key: string;
  readonly tenant: TenantState | null;
  readonly tone: string;
  readonly name: string;
  readonly seenBytes: number;
  readonly pendingBytes: number;
  readonly detail: string | null;
  /** The cap counts it. */
  readonly booked: boolean;
  readonly rank: number;
}

/** Memory nobody answers for is shown from this share of the total on. */
const LEAST_OTHER_SHARE = 0.005;
const words = strings.device;

/** null when the total is unknown: there is nothing to draw to scale. */
export function budgetOf(device: DeviceState, state: LandlordState): Budget | null {
  const { totalBytes } = device;
  if (totalBytes === null || totalBytes <= 0) return null;
  const parts = partsOf(device, state, totalBytes);
  const cut = (bytes: number): number =>
    Math.round((Math.min(bytes, totalBytes) / totalBytes) * 10_000) / 100;

  const segments: Segment[] = [];
  let reached = 0;
  const add = (part: Part, bytes: number, hatched: boolean): void => {
    const fromPercent = cut(reached);
    reached += bytes;
    const widthPercent = round(cut(reached) - fromPercent);
    if (bytes <= 0 || widthPercent <= 0) return;
    segments.push({
      key: hatched ? `${part.key} pending` : part.key,
      tone: part.tone,
      hatched,
      label: part.name,
      bytesText: hatched && part.seenBytes > 0 ? words.toCome(bytesText(bytes)) : bytesText(bytes),
      fromPercent,
      widthPercent,
    });
  };
  for (const part of parts) {
    add(part, part.seenBytes, false);
    add(part, part.pendingBytes, true);
  }

  const beforeBooked = parts.filter((part) => !part.booked).reduce((sum, part) => sum + part.seenBytes, 0);
  const overBytes = reached - totalBytes;
  return {
    segments,
    freePercent: round(100 - cut(reached)),
    floor:
      device.floorBytes === null
        ? null
        : {
            atPercent: cut(Math.max(0, totalBytes - device.floorBytes)),
            label: words.floorMark(bytesText(device.floorBytes)),
          },
    cap:
      device.capBytes === null
        ? null
        : {
            atPercent: cut(beforeBooked + device.capBytes),
            label: words.capMark(bytesText(device.capBytes)),
          },
    keys: keysOf(device, parts),
    over: overBytes > 0.01 * totalBytes ? words.over(bytesText(overBytes)) : null,
  };
}

function partsOf(device: DeviceState, state: LandlordState, totalBytes: number): readonly Part[] {
  const tones = toneOf(state);
  const tenants = state.tenants.filter((tenant) => tenant.deviceId === device.id);
  const parts = tenants.map((tenant) => partOf(tenant, modelOf(tenant, state.models), tones));
  const seen = parts.reduce((sum, part) => sum + part.seenBytes, 0);
  const pending = parts.reduce((sum, part) => sum + part.pendingBytes, 0);

  const otherBytes = (device.usedBytes ?? seen) - seen;
  if (otherBytes > LEAST_OTHER_SHARE * totalBytes) {
    parts.push(plainPart('other', words.other, 'other', otherBytes, 0, false, 2));
  }
  // The ledger may know of a load before a tenant stands for it.
  const restBytes = device.outstandingBytes - pending;
  if (restBytes > LEAST_OTHER_SHARE * totalBytes) {
    parts.push(plainPart('loading', words.loading, 'other', 0, restBytes, true, 7));
  }
  return parts.sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : 1));
}

function plainPart(
  key: string,
  name: string,
  tone: string,
  seenBytes: number,
  pendingBytes: number,
  booked: boolean,
  rank: number,
): Part {
  const detail = pendingBytes > 0 ? words.hatched : null;
  return { key, tenant: null, tone, name, seenBytes, pendingBytes, detail, booked, rank };
}

function partOf(tenant: TenantState, model: ModelState | null, tones: (id: string) => string): Part {
  const base = { key: tenant.id, tenant };
  const { predictedBytes, measuredBytes } = tenant;
  switch (tenant.kind) {
    case 'desktop':
      return {
        ...base,
        tone: 'desktop',
        name: words.desktop,
        seenBytes: measuredBytes ?? 0,
        pendingBytes: 0,
        detail: [holdersText(tenant), usualText(tenant)].filter((text) => text !== null).join('; ') || null,
        booked: false,
        rank: 0,
      };
    case 'foreign':
      return {
        ...base,
        tone: 'foreign',
        name: shown(tenant.name),
        seenBytes: measuredBytes ?? 0,
        pendingBytes: 0,
        detail: (tenant.parts?.length ?? 0) > 1 ? holdersText(tenant) : strings.kinds.foreign,
        booked: false,
        rank: 1,
      };
    case 'reserved':
    case 'agent': {
      const seenBytes = measuredBytes ?? (tenant.kind === 'agent' ? (predictedBytes ?? 0) : 0);
      const pendingBytes = Math.max(0, (predictedBytes ?? 0) - seenBytes);
      const kind = tenant.kind === 'agent' ? strings.kinds.agent : strings.kinds.reserved;
      return {
        ...base,
        tone: tenant.kind,
        name: shown(tenant.name),
        seenBytes,
        pendingBytes,
        detail: pendingBytes > 0 ? words.booked : kind,
        booked: true,
        rank: tenant.kind === 'reserved' ? 3 : 5,
      };
    }
    case 'model': {
      const loading = model?.status === 'loading';
      const seenBytes = measuredBytes ?? (loading ? 0 : (predictedBytes ?? 0));
      const pendingBytes = loading ? Math.max(0, (predictedBytes ?? 0) - seenBytes) : 0;
      const onlyPredicted = measuredBytes === null && !loading && predictedBytes !== null;
      return {
        ...base,
        tone: tones(model?.id ?? tenant.name),
        name: shown(shortName(model?.id ?? tenant.name)),
        seenBytes,
        pendingBytes,
        detail: pendingBytes > 0 ? words.hatched : onlyPredicted ? words.predicted : null,
        booked: true,
        rank: loading ? 6 : 4,
      };
    }
  }
}

/** The model a tenant stands for; by id, or by name where the id is the ledger's own. */
function modelOf(tenant: TenantState, models: readonly ModelState[]): ModelState | null {
  return models.find((model) => model.id === tenant.id || model.id === tenant.name) ?? null;
}

/** `kwin 0.6, firefox 0.8, 4 more`. */
function holdersText(tenant: TenantState): string | null {
  const parts = [...(tenant.parts ?? [])].sort((a, b) => b.bytes - a.bytes);
  if (parts.length === 0) return null;
  const largest = parts.slice(0, 2);
  // One unit for both needs no repeating.
  const plain = largest.every((part) => bytesText(part.bytes).endsWith(' GB')) ? ' GB' : '';
  const named = largest.map((part) => `${shown(part.name)} ${bytesText(part.bytes).replace(plain, '')}`);
  const rest = parts.length - named.length;
  return [...named, ...(rest > 0 ? [words.more(rest)] : [])].join(', ');
}

/** What the desktop holds when nobody works at it and when somebody does; null: not learned yet. */
function usualText({ usual }: TenantState): string | null {
  return usual === undefined ? null : words.usual(bytesText(usual.idleBytes), bytesText(usual.busyBytes));
}

function keysOf(device: DeviceState, parts: readonly Part[]): readonly BudgetKey[] {
  const keys: BudgetKey[] = parts
    .filter((part) => part.seenBytes + part.pendingBytes > 0)
    .map((part) => ({
      key: part.key,
      tone: part.tone,
      hatched: part.pendingBytes > 0,
      name: part.name,
      bytesText: bytesText(part.seenBytes + part.pendingBytes),
      detail: part.detail,
    }));
  if (device.freeBytes !== null) {
    const later =
      device.outstandingBytes > 0 ? Math.max(0, device.freeBytes - device.outstandingBytes) : null;
    keys.push({
      key: 'free',
      tone: 'free',
      hatched: false,
      name: words.free,
      bytesText: bytesText(device.freeBytes),
      detail: later === null ? null : words.freeOnceLoaded(bytesText(later)),
    });
  }
  return keys;
}

function round(percent: number): number {
  return Math.max(0, Math.round(percent * 100) / 100);
}
