import type { TenantKind, TenantState } from '../../../shared/state.ts';
import type { DeviceSample, ProcessMemory } from '../devices/sample.ts';
import type { Booking } from './booking.ts';
import { programKind, programName } from './program-kind.ts';

export interface ProcessRef {
  readonly pid: number;
  /** Where known on both sides it must match: pids are reused. */
  readonly startTimeTicks: number | null;
}

/** A model that holds memory, as far as anyone knows. */
export interface KnownModel {
  /** `backend/model`. */
  readonly id: string;
  readonly deviceId: string | null;
  /** Its proven process and that one's children. */
  readonly processes: readonly ProcessRef[];
  readonly predictedBytes: number | null;
  /** What is known of it without a per-process figure: reported by its backend, or by how free memory settled. */
  readonly measuredBytes: number | null;
}

export interface AttributionInput {
  readonly sample: DeviceSample;
  /** null: not read. Rows of other devices are ignored. */
  readonly processes: readonly ProcessMemory[] | null;
  readonly models: readonly KnownModel[];
  /** Agents and reserved jobs become tenants; lines of models are known through `models`. */
  readonly bookings: readonly Booking[];
  /** Processes of agents and jobs, by booking id. */
  readonly holders?: ReadonlyMap<string, readonly ProcessRef[]>;
  /** One process that many lines live in; left out: there is none. */
  readonly engine?: EngineProcess;
}

/** What the embedded engine's process holds is its models' and agents'; what is left is its own line's. */
export interface EngineProcess {
  readonly processes: readonly ProcessRef[];
  /** Begins the id of the line that stands for the process itself. */
  readonly ownLine: string;
  readonly holds: (tenantId: string) => boolean;
}

/** At most this many of the largest holders are named. */
const PARTS = 8;

/**
 * Who holds a device's memory, adding up to what the device says is used and no more: process lists
 * over-report (shared buffers, MIG rows) and under-report (graphics clients are missing from
 * NVIDIA's compute list). Models, then agents, reserved jobs, foreign programs by name, and the
 * desktop, which is what is left: unattributed memory is never a model's (rule 14). A model nobody
 * can measure is given room up to its prediction out of that rest, so that the desktop is not blamed
 * for it either, but its own figure stays null (rule 5).
 */
export function attribute(input: AttributionInput): readonly TenantState[] {
  const { sample } = input;
  const mine = (input.processes ?? []).filter((use) => use.deviceId === sample.id);
  const taken = new Set<ProcessMemory>();
  const known = withEngine(input.engine, mine, taken, [
    ...models(input, mine, taken),
    ...booked(input, mine, taken),
  ]);
  const others = mine.filter((use) => !taken.has(use));
  const foreign = groups(others.filter((use) => programKind(use) === 'foreign')).map((group) =>
    tenant(sample, 'foreign', group.name, {
      measuredBytes: group.bytes,
      pids: group.pids,
      parts: group.parts,
    }),
  );
  const drawn = others.filter((use) => programKind(use) === 'desktop');
  return capped(sample, known, foreign, drawn);
}

function models(
  input: AttributionInput,
  mine: readonly ProcessMemory[],
  taken: Set<ProcessMemory>,
): readonly TenantState[] {
  return input.models.flatMap((model) => {
    const uses = take(mine, model.processes, taken);
    const here = model.deviceId === input.sample.id;
    if (!here && uses.length === 0) return [];
    const measured = total(uses) ?? (here ? model.measuredBytes : null);
    const pids = model.processes.map((process) => process.pid);
    const predictedBytes = here ? model.predictedBytes : null;
    const facts = { measuredBytes: measured, predictedBytes, pids };
    return [{ ...tenant(input.sample, 'model', model.id, facts), id: model.id }];
  });
}

function booked(
  input: AttributionInput,
  mine: readonly ProcessMemory[],
  taken: Set<ProcessMemory>,
): readonly TenantState[] {
  return input.bookings.flatMap((line) => {
    if (line.deviceId !== input.sample.id || line.kind === 'model') return [];
    const processes = input.holders?.get(line.id) ?? [];
    const measuredBytes = total(take(mine, processes, taken)) ?? line.measuredBytes;
    const pids = processes.map((process) => process.pid);
    const facts = { measuredBytes, predictedBytes: line.predictedBytes, pids };
    return [{ ...tenant(input.sample, line.kind, line.name, facts), id: line.id }];
  });
}

/** Its tenants have figures of their own, by the engine's account; the process's rest is the engine's. */
function withEngine(
  engine: EngineProcess | undefined,
  mine: readonly ProcessMemory[],
  taken: Set<ProcessMemory>,
  known: readonly TenantState[],
): readonly TenantState[] {
  const held = engine === undefined ? null : total(take(mine, engine.processes, taken));
  if (engine === undefined || held === null) return known;
  const told = sum(known.filter((one) => engine.holds(one.id) && !one.id.startsWith(engine.ownLine)));
  const pids = engine.processes.map((process) => process.pid);
  return known.map((one) =>
    one.id.startsWith(engine.ownLine) ? { ...one, measuredBytes: Math.max(0, held - told), pids } : one,
  );
}

/** What these processes hold of one device by its rows; null: no row is theirs, or one has no figure. */
export function heldBy(rows: readonly ProcessMemory[], processes: readonly ProcessRef[]): number | null {
  return total(take(rows, processes, new Set()));
}

function take(
  mine: readonly ProcessMemory[],
  processes: readonly ProcessRef[],
  taken: Set<ProcessMemory>,
): readonly ProcessMemory[] {
  const uses = mine.filter((use) => !taken.has(use) && processes.some((process) => isSame(process, use)));
  for (const use of uses) taken.add(use);
  return uses;
}

function isSame(process: ProcessRef, use: ProcessMemory): boolean {
  if (process.pid !== use.pid) return false;
  return (
    process.startTimeTicks === null ||
    use.startTimeTicks === null ||
    process.startTimeTicks === use.startTimeTicks
  );
}

/** null: no row, or a row without bytes: a part of it is unknown, so the whole is. */
function total(uses: readonly ProcessMemory[]): number | null {
  if (uses.length === 0) return null;
  return uses.reduce<number | null>(
    (sum, use) => (sum === null || use.bytes === null ? null : sum + use.bytes),
    0,
  );
}

function capped(
  sample: DeviceSample,
  known: readonly TenantState[],
  foreign: readonly TenantState[],
  drawn: readonly ProcessMemory[],
): readonly TenantState[] {
  const used = sample.usedBytes;
  if (used === null) return [...known, ...foreign, desktop(sample, null, drawn)];
  const ours = scaled(known, used);
  const theirs = scaled(foreign, used - sum(ours));
  const rest = used - sum(ours) - sum(theirs);
  const unmeasured = ours.reduce(
    (bytes, one) => bytes + (one.measuredBytes === null ? (one.predictedBytes ?? 0) : 0),
    0,
  );
  const seen = Math.min(
    rest,
    drawn.reduce((bytes, use) => bytes + (use.bytes ?? 0), 0),
  );
  return [...ours, ...theirs, desktop(sample, Math.max(seen, rest - unmeasured), drawn)];
}

/** In proportion, where they claim more than there is. */
function scaled(tenants: readonly TenantState[], limitBytes: number): readonly TenantState[] {
  const claimed = sum(tenants);
  if (claimed <= limitBytes) return tenants;
  const share = limitBytes / claimed;
  const scale = (bytes: number) => Math.floor(bytes * share);
  return tenants.map((one) => {
    if (one.measuredBytes === null) return one;
    const parts = one.parts?.map((part) => ({ ...part, bytes: scale(part.bytes) }));
    const smaller = { ...one, measuredBytes: scale(one.measuredBytes) };
    return parts === undefined ? smaller : { ...smaller, parts };
  });
}

function sum(tenants: readonly TenantState[]): number {
  return tenants.reduce((bytes, one) => bytes + (one.measuredBytes ?? 0), 0);
}

/** On memory that is the system's, what is left is the system and everything on it. */
function desktop(
  sample: DeviceSample,
  measuredBytes: number | null,
  drawn: readonly ProcessMemory[],
): TenantState {
  const all = groups(drawn);
  let room = measuredBytes ?? Number.POSITIVE_INFINITY;
  const parts = all
    .flatMap((group) =>
      group.bytes === null ? [] : [{ name: group.name, bytes: group.bytes, pid: group.pid }],
    )
    .sort((one, other) => other.bytes - one.bytes || (one.name < other.name ? -1 : 1))
    .slice(0, PARTS)
    .map((part) => {
      const bytes = Math.min(part.bytes, room);
      room -= bytes;
      return { ...part, bytes };
    });
  return {
    ...tenant(sample, 'desktop', sample.memory === 'discrete' ? 'the desktop' : 'the system', {
      measuredBytes,
      pids: all.flatMap((group) => group.pids),
      parts: parts.filter((part) => part.bytes > 0),
    }),
    id: `desktop@${sample.id}`,
  };
}

interface Group {
  readonly name: string;
  /** null: one of them has no figure. */
  readonly bytes: number | null;
  /** The largest of them. */
  readonly pid: number | null;
  readonly pids: readonly number[];
  readonly parts: readonly { readonly name: string; readonly bytes: number; readonly pid: number | null }[];
}

/** Processes of one program together. */
function groups(uses: readonly ProcessMemory[]): readonly Group[] {
  const byName = new Map<string, ProcessMemory[]>();
  for (const use of uses) {
    const name = programName(use.name);
    const group = byName.get(name);
    if (group === undefined) byName.set(name, [use]);
    else group.push(use);
  }
  return [...byName].map(([name, members]) => {
    const sorted = [...members].sort((one, other) => (other.bytes ?? -1) - (one.bytes ?? -1));
    const parts = sorted.flatMap((use) =>
      use.bytes === null ? [] : [{ name, bytes: use.bytes, pid: use.pid }],
    );
    return {
      name,
      bytes: total(members),
      pid: sorted[0]?.pid ?? null,
      pids: sorted.map((use) => use.pid),
      parts: parts.slice(0, PARTS),
    };
  });
}

function tenant(
  sample: DeviceSample,
  kind: TenantKind,
  name: string,
  facts: {
    readonly measuredBytes: number | null;
    readonly predictedBytes?: number | null;
    readonly pids: readonly number[];
    readonly parts?: TenantState['parts'];
  },
): TenantState {
  const base = {
    id: `${kind}:${name}@${sample.id}`,
    kind,
    name,
    deviceId: sample.id,
    predictedBytes: facts.predictedBytes ?? null,
    measuredBytes: facts.measuredBytes,
    pids: facts.pids,
  };
  return facts.parts === undefined ? base : { ...base, parts: facts.parts };
}
