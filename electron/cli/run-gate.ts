import { createGate } from '../core/gate/gate.ts';
import { GATE_DIR_VARIABLE, type GateRoot, MACHINE_WIDE_ROOT } from '../core/gate/gate-root.ts';
import { inspectLane, type LaneInspection } from '../core/gate/inspect.ts';
import { ageText } from '../core/gate/turn.ts';
import type { Invocation } from './arguments.ts';
import { loneWordNote } from './backend-name.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

/** Where a backend's lane lies and who holds it, without taking it: 0 idle, 75 held, 4 unknown. */
export const runGate: Run = async (invocation, terminal) => {
  const url = invocation.positionals[0];
  if (invocation.flag('machine-wide')) return machineWide(invocation, terminal);
  if (url === undefined) {
    return usageError(
      invocation.command,
      'A backend’s URL is missing, such as http://127.0.0.1:8080.',
      terminal,
    );
  }
  const plan = createGate().plan(url, invocation.text('model'));
  if (plan.kind === 'open') {
    if (plan.reason === 'bad_url') return usageError(invocation.command, plan.why, terminal);
    const message = `${plan.why} Turns go on without their lanes.`;
    if (invocation.flag('json')) terminal.out(JSON.stringify(noLane(url, plan.reason, message)));
    else terminal.err(`landlord gate: ${plain(message)}`);
    return EXIT.unknown;
  }
  if (plan.kind === 'skip') {
    const message = skipText(url, plan.why);
    terminal.out(invocation.flag('json') ? JSON.stringify(noLane(url, plan.why, message)) : plain(message));
    return EXIT.done;
  }
  const lanes = plan.lanes.map((lane) => inspectLane(lane));
  terminal.out(
    invocation.flag('json')
      ? JSON.stringify({ ...gateJson(url, plan.root, lanes), flaw: plan.flaw?.message ?? null })
      : gateText(plan.root, lanes, plan.flaw?.message ?? null),
  );
  return exitCode(lanes);
};

function skipText(url: string, why: 'not_configured' | 'not_local' | 'no_lane'): string {
  return why === 'no_lane'
    ? `${url} leads to several backends: say which by --model. Without it a turn takes no lane of its own, and the gateway takes the right one with each request.`
    : (loneWordNote(url) ?? `${url} is not on this machine, so its turns take no lane.`);
}

async function machineWide(invocation: Invocation, terminal: Terminal): Promise<number> {
  const { makeMachineWide } = await import('../core/gate/machine-wide.ts');
  const made = makeMachineWide(process.env.LANDLORD_TEST_MACHINE_WIDE_ROOT ?? MACHINE_WIDE_ROOT);
  if (!made.ok) {
    terminal.err(`landlord gate: ${plain(made.error.message)}`);
    return exitCodeOf(made.error);
  }
  const { path, created } = made.value;
  terminal.out(
    invocation.flag('json')
      ? JSON.stringify({ path, created })
      : `${path} ${created ? 'is made' : 'was there'}: from their next turn on, all users of this machine share their lanes.`,
  );
  return EXIT.done;
}

/** Held counts before unknown: whoever holds one of a turn's lanes holds up the turn. */
function exitCode(lanes: readonly LaneInspection[]): number {
  if (lanes.some((lane) => lane.held === true)) return EXIT.busy;
  return lanes.some((lane) => lane.held === null) ? EXIT.unknown : EXIT.done;
}

function noLane(url: string, why: string, message: string): Readonly<Record<string, unknown>> {
  return { url, lane: null, why, message, held: null };
}

/** The fields of the lane that decides at the top, as for the one lane there nearly always is. */
function gateJson(
  url: string,
  root: GateRoot,
  lanes: readonly LaneInspection[],
): Readonly<Record<string, unknown>> {
  const main = lanes.find((lane) => lane.held === true) ?? lanes.at(-1);
  return {
    url,
    root: root.path,
    rootFrom: root.from,
    lane: main?.name ?? null,
    path: main?.path ?? null,
    inode: main?.slots[0]?.inode ?? null,
    width: main?.width ?? null,
    held: main?.held ?? null,
    holders: main?.holders.map((holder) => ({ ...holder, heldForMs: ageMs(holder.acquiredAt) })) ?? [],
    waiting: main?.waiting ?? 0,
    slots: main?.slots ?? [],
    lanes,
  };
}

function gateText(root: GateRoot, lanes: readonly LaneInspection[], flaw: string | null): string {
  const lines: string[] = [];
  if (root.from === 'override') lines.push(`root   ${root.path} (set by ${GATE_DIR_VARIABLE})`);
  if (root.from === 'machine-wide') lines.push(`root   ${root.path} (shared by all users)`);
  for (const lane of lanes) {
    lines.push(`lane   ${lane.name}  ${stateText(lane)}`);
    lines.push(
      `lock   ${lane.path}  ${lane.slots[0]?.inode == null ? 'not made yet' : `inode ${lane.slots[0].inode}`}`,
    );
    lines.push(`width  ${lane.width}`);
    if (lane.note !== null) lines.push(`note   ${lane.note}`);
    for (const slot of lane.slots) {
      if (slot.holder !== null) lines.push(`held   ${holderText(slot.holder)}`);
      if (slot.note !== null) lines.push(`note   ${slot.note}`);
    }
    if (lane.waiting > 0) lines.push(`queue  ${lane.waiting} waiting`);
  }
  if (flaw !== null) lines.push(`note   ${flaw}`);
  return lines.map(plain).join('\n');
}

function stateText(lane: LaneInspection): string {
  if (lane.held === true) return 'held';
  if (lane.held === null) return 'unknown';
  return lane.holders.length === 0 ? 'idle' : `${lane.holders.length} of ${lane.width} held`;
}

function holderText(holder: LaneInspection['holders'][number]): string {
  const age = ageMs(holder.acquiredAt);
  const parts = [
    holder.pid === null ? 'by an unseen process' : `by pid ${holder.pid}`,
    holder.command,
    holder.session === null ? null : `session ${holder.session}`,
    holder.model === null ? null : `model ${holder.model}`,
    holder.class,
    age === null ? null : `for ${ageText(age)}`,
  ];
  return parts.filter((part) => part !== null).join(', ');
}

function ageMs(acquiredAt: string | null): number | null {
  return acquiredAt === null ? null : Math.max(0, Date.now() - Date.parse(acquiredAt));
}
