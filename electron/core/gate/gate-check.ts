import { accessSync, constants, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { createGate, type Gate } from './gate.ts';
import { GATE_DIR_VARIABLE, type GateRoot, networkFileSystem } from './gate-root.ts';
import { commandOf, ghostsIn, heldElsewhere, inspectLane, type LaneInspection } from './inspect.ts';
import { laneFiles } from './lane-files.ts';
import { LOCAL_HOST, laneKey } from './lane-key.ts';
import { seesAllProcesses } from './process-start.ts';
import { IDLE_PORT, runShowdown, type ShowdownOptions } from './showdown.ts';

export interface GateCheck {
  readonly name: string;
  readonly outcome: 'ok' | 'failed' | 'skipped';
  /** Sentences; the first says the result. */
  readonly detail: readonly string[];
}

export interface GateCheckOptions extends ShowdownOptions {
  /** Whose lane the showdown is on; default: one of no backend. */
  readonly backend?: string | null;
}

/** What `landlord doctor` says of the gate. Starts some processes. Only where a backend is named is its lane taken, for a second, if it is free. */
export async function checkGate(
  options: GateCheckOptions = {},
): Promise<{ readonly title: string; readonly checks: readonly GateCheck[] }> {
  const override = options.gateDir ?? null;
  const env = override === null ? process.env : { ...process.env, [GATE_DIR_VARIABLE]: override };
  const gate = createGate({ env: () => env });
  const locker = gate.world.locker();
  const root = gate.root();
  const checks: GateCheck[] = [
    locker.ok
      ? { name: 'file lock', outcome: 'ok', detail: ['the system’s file lock can be called.'] }
      : { name: 'file lock', outcome: 'failed', detail: [locker.error.message] },
    rootCheck(root),
  ];
  checks.push(await showdownCheck(gate, options));
  if (root !== null) checks.push(ghostCheck(root), elsewhereCheck(root), lanesCheck(root));
  return { title: 'Gate', checks };
}

function rootCheck(root: GateRoot | null): GateCheck {
  const name = 'root';
  if (root === null) {
    const why = `this user has no home in the passwd database; set ${GATE_DIR_VARIABLE}.`;
    return { name, outcome: 'failed', detail: [why] };
  }
  const from = {
    override: `${GATE_DIR_VARIABLE} sets it; programs without that variable are on other lanes`,
    'machine-wide': 'all users share it',
    passwd: 'from the passwd entry of this user',
  }[root.from];
  const network = networkFileSystem(root.path);
  if (network !== null) {
    const why = `${root.path} is on ${network}, where a lock may not be one lock: turns go on without their lanes.`;
    return { name, outcome: 'failed', detail: [why] };
  }
  if (!canWrite(root.path)) {
    const why = `${root.path} may not be written by this user: its turns go on without their lanes.`;
    return { name, outcome: 'failed', detail: [why] };
  }
  const detail = [`${root.path} (${from}).`];
  if (!seesAllProcesses()) {
    detail.push('Inside a pid namespace: holders outside are not shown, and a lane may read unknown.');
  }
  return { name, outcome: 'ok', detail };
}

/** A root that is not there yet is made by the first turn, where its nearest folder lets it. */
function canWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch (thrown) {
    const isMissing = thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
    return isMissing && dirname(path) !== path && canWrite(dirname(path));
  }
}

async function showdownCheck(gate: Gate, options: GateCheckOptions): Promise<GateCheck> {
  const name = 'showdown';
  const backend = options.backend ?? null;
  const port =
    backend === null ? { kind: 'port' as const, port: options.port ?? IDLE_PORT } : portOf(gate, backend);
  if (port.kind === 'skipped') return { name, outcome: 'skipped', detail: [port.why] };
  const result = await runShowdown({ ...options, port: port.port });
  const where = `${result.path ?? 'no lock'}, inode ${result.inode ?? 'none'}`;
  const steps = result.steps.map(
    (step) =>
      `${step.passed ? '✓' : '✗'} ${step.who}: ${step.saw}${step.passed ? '' : `, not ${step.expected}`} (${step.how})`,
  );
  const first = result.passed
    ? `three sessions under different homes met at one lock: ${where}.`
    : `they did not meet at one lock; the first had ${where}.`;
  const why = result.passed || result.why === null ? [] : [result.why];
  return { name, outcome: result.passed ? 'ok' : 'failed', detail: [first, ...why, ...steps] };
}

/** A turn that has the lane, or waits for it, is more than a check. */
function portOf(
  gate: Gate,
  backend: string,
): { readonly kind: 'port'; readonly port: number } | { readonly kind: 'skipped'; readonly why: string } {
  const skipped = (why: string): { kind: 'skipped'; why: string } => ({ kind: 'skipped', why });
  const plan = gate.plan(backend, null);
  if (plan.kind === 'skip') {
    const why = plan.why === 'no_lane' ? 'leads to several backends' : 'is not on this machine';
    return skipped(`${backend} ${why}, so it has no lane of its own.`);
  }
  if (plan.kind === 'open') return skipped(plan.message);
  const lanes = plan.lanes.map((lane) => inspectLane(lane));
  const wide = lanes.find((lane) => lane.width > 1);
  if (wide !== undefined)
    return skipped(`the lane ${wide.name} is ${wide.width} turns wide, so sessions need not meet in it.`);
  const used = lanes.find((lane) => lane.holders.length > 0 || lane.held !== false || lane.waiting > 0);
  if (used !== undefined)
    return skipped(`the lane ${used.name} is in use, or that can’t be told; try again when it is free.`);
  const key = laneKey(backend, () => gate.world.names());
  return key.kind === 'local' ? { kind: 'port', port: key.port } : skipped(`${backend} has no lane here.`);
}

function ghostCheck(root: GateRoot): GateCheck {
  const ghosts = ghostsIn(root.path);
  const name = 'replaced locks';
  if (ghosts.length === 0) {
    return { name, outcome: 'ok', detail: ['every lock that is held is the file at its path.'] };
  }
  const detail = ghosts.map(
    (ghost) =>
      `pid ${ghost.pid} (${commandOf(ghost.pid) ?? 'unknown'}) holds ${ghost.path}, which is not the file there now.`,
  );
  const first =
    'a lock file was deleted or replaced under its holder: until that turn ends, another may run beside it. Find what removes files there.';
  return { name, outcome: 'failed', detail: [first, ...detail] };
}

/** No failure: a test or a container may mean to have a root of its own. */
function elsewhereCheck(root: GateRoot): GateCheck {
  const name = 'other roots';
  const found = heldElsewhere(root.path);
  if (found.length === 0) return { name, outcome: 'ok', detail: ['no lane is held in another folder.'] };
  const detail = found.map(({ pid, path }) => `pid ${pid} (${commandOf(pid) ?? 'unknown'}) holds ${path}.`);
  const first = `${found.length} held in other folders, which exclude no turn here: another ${GATE_DIR_VARIABLE}, or a root that was moved.`;
  return { name, outcome: 'ok', detail: [first, ...detail] };
}

function lanesCheck(root: GateRoot): GateCheck {
  // The showdown's own is no backend's.
  const lanes = lanesIn(root.path).filter((lane) => lane.name !== `${LOCAL_HOST}_${IDLE_PORT}`);
  const name = 'lanes';
  if (lanes.length === 0) return { name, outcome: 'ok', detail: ['no turn has been taken here yet.'] };
  const held = lanes.filter((lane) => lane.holders.length > 0).length;
  const detail = lanes.map((lane) => {
    const state = lane.held === null ? 'unknown' : lane.holders.length === 0 ? 'idle' : 'held';
    const by = lane.holders.map((holder) => ` by pid ${holder.pid ?? 'unknown'}`).join(',');
    const wide = lane.width === 1 ? '' : `, ${lane.width} turns wide`;
    return `${lane.path}, inode ${lane.slots[0]?.inode ?? 'none'}${wide}: ${state}${by}.`;
  });
  return { name, outcome: 'ok', detail: [`${lanes.length} in this root, ${held} held.`, ...detail] };
}

/** Every lane that has a lock file in a root. */
export function lanesIn(root: string): readonly LaneInspection[] {
  let names: readonly string[];
  try {
    names = readdirSync(root);
  } catch {
    return [];
  }
  return names
    .flatMap((name) => /^([0-9a-z.:-]+_\d{1,5})\.lock$/.exec(name)?.[1] ?? [])
    .sort()
    .map((name) => inspectLane(laneFiles(root, name)));
}
