/** The lanes: whose turn it is on each backend, and what is odd about it. Pure. */
import type { LandlordEvent } from '../../shared/events.ts';
import type {
  AgentState,
  LandlordState,
  LaneHolderState,
  LaneState,
  ModelState,
} from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { epochMs, hostOf } from './figures.ts';
import { shown } from './shown.ts';

export interface LaneRow {
  readonly key: string;
  readonly lamp: 'busy' | 'idle' | 'asleep' | 'off';
  /** Set in bold before `text`; null: `text` stands alone. */
  readonly name: string | null;
  readonly text: string;
  readonly facts: readonly string[];
  /** Epoch ms since when, to be shown as an age; null: `age` says what is known. */
  readonly sinceMs: number | null;
  readonly age: string | null;
  /** It is over: told only where there is room. */
  readonly past: boolean;
}

export interface LaneCard {
  /** Of the backend; one card for each. */
  readonly backend: string;
  readonly title: string;
  /** On the first line: who waits, or how many places are free; null: neither. */
  readonly beside: string | null;
  /** What a person should see to, in a sentence. */
  readonly trouble: string | null;
  readonly rows: readonly LaneRow[];
}

const words = strings.lanes;

/** A turn that went elsewhere comes back with its next one: older than this it says nothing. */
const DEFLECTED_MS = 600_000;
const MOST_DEFLECTED = 3;
const MOST_WAITING = 2;
/** Characters of a command. */
const MOST_COMMAND = 40;
const MAX_PLACE = Number.MAX_SAFE_INTEGER;

/** Only lanes that the config sets, that somebody holds, or that somebody waits for. */
export function laneCards(state: LandlordState, events: readonly LandlordEvent[]): readonly LaneCard[] {
  return state.lanes.filter(isInUse).map((lane) => laneCard(lane, state, events));
}

function isInUse(lane: LaneState): boolean {
  return lane.configured || lane.held === true || lane.holders.length > 0 || lane.waiting > 0;
}

function laneCard(lane: LaneState, state: LandlordState, events: readonly LandlordEvent[]): LaneCard {
  const backend = state.backends.find(({ name }) => name === lane.backend);
  const where = backend === undefined ? null : hostOf(backend.url);
  const mine = events.filter((event) => event.backend === lane.backend);
  return {
    backend: lane.backend,
    title: where === null ? words.title(lane.backend) : words.titleOn(lane.backend, where),
    trouble: troubleOf(lane, state.models, mine),
    beside: waitingText(lane, state.agents) ?? freeText(lane),
    rows: [...slotRows(lane), ...deflectedRows(lane, state.at, mine)],
  };
}

function slotRows(lane: LaneState): readonly LaneRow[] {
  const held = lane.holders.map(holderRow);
  const unseen = plainRow('unseen', 'busy', words.heldUnseen);
  if (lane.held === true) return held.length === 0 ? [unseen] : held;
  if (lane.held === null) return [...held, plainRow('unknown', 'off', words.unknown)];
  return held.length > 0 ? held : [plainRow('free', 'idle', words.free)];
}

/** Of a wide lane that some hold and that has room. */
function freeText({ held, holders, width }: LaneState): string | null {
  const known = held === false && holders.length > 0;
  return known ? words.freeOf(width - holders.length, width) : null;
}

function plainRow(key: string, lamp: LaneRow['lamp'], text: string): LaneRow {
  return { key, lamp, name: null, text, facts: [], sinceMs: null, age: null, past: false };
}

function holderRow(holder: LaneHolderState, index: number): LaneRow {
  const { session, command, pid, model } = holder;
  const program = pid === null ? words.unseenProcess : words.process(shortCommand(command), pid);
  const sinceMs = epochMs(holder.acquiredAt);
  return {
    key: `held ${index}`,
    lamp: 'busy',
    name: session ?? program,
    text: words.holds,
    facts: [
      ...(model === null ? [] : [shown(model)]),
      ...(holder.class === null ? [] : [words.class[holder.class]]),
      ...(session === null ? [words.sessionUnknown] : [program]),
    ],
    sinceMs,
    age: sinceMs === null ? words.ageUnknown : null,
    past: false,
  };
}

/** `node agent.ts` of `/usr/bin/node --no-warnings src/agent.ts 3`: the program and what it runs. */
function shortCommand(command: string | null): string {
  const parts = shown(command ?? '')
    .split(' ')
    .filter((word) => word !== '' && !word.startsWith('-'))
    .map((word) => word.slice(word.lastIndexOf('/') + 1));
  const text = parts.slice(0, 2).join(' ');
  return text.length > MOST_COMMAND ? `${text.slice(0, MOST_COMMAND - 1)}…` : text;
}

/** By name as far as names are known, first in the queue first; programs that flock by themselves have none. */
function waitingText({ backend, waiting }: LaneState, agents: readonly AgentState[]): string | null {
  if (waiting === 0) return null;
  const known = agents
    .filter((agent) => agent.state === 'waiting' && agent.backend === backend)
    .sort((a, b) => (a.queuePosition ?? MAX_PLACE) - (b.queuePosition ?? MAX_PLACE))
    .map(({ agent }) => agent);
  if (known.length === 0) return words.waiting(waiting);
  const names = known.slice(0, MOST_WAITING);
  // The gateway may hold back more than stand at the lock itself.
  return words.waitingBy(names, Math.max(waiting, known.length) - names.length);
}

/** The last deflection of each session that has not got the lane since. */
function deflectedRows(lane: LaneState, at: string, events: readonly LandlordEvent[]): readonly LaneRow[] {
  const nowMs = epochMs(at);
  const holding = new Set(lane.holders.map(({ session }) => session));
  const latest = new Map<string, LandlordEvent>();
  for (const event of events.toReversed()) {
    const { kind, session } = event;
    if (kind !== 'deflected' || session === undefined || holding.has(session) || latest.has(session))
      continue;
    const atMs = epochMs(event.at);
    if (nowMs === null || atMs === null || nowMs - atMs > DEFLECTED_MS) continue;
    latest.set(session, event);
  }
  return [...latest].slice(0, MOST_DEFLECTED).map(([session, event]) => ({
    key: `deflected ${session}`,
    lamp: 'off',
    name: session,
    text: words.deflected,
    facts: [words.deflectedWhy, words.returns],
    sinceMs: epochMs(event.at),
    age: null,
    past: true,
  }));
}

/** What was told stands as long as what it was told of. */
function troubleOf(
  lane: LaneState,
  models: readonly ModelState[],
  events: readonly LandlordEvent[],
): string | null {
  const stuck = events.findLast(({ kind }) => kind === 'lane_stuck');
  if (stuck !== undefined && lane.holders.some((holder) => heldBefore(holder, stuck))) return stuck.reason;
  const bypassed = events.findLast(({ kind }) => kind === 'lane_bypassed');
  const atWork = models.some((model) => model.backend === lane.backend && model.busy === true);
  const free = lane.held === false && lane.holders.length === 0;
  return bypassed !== undefined && atWork && free ? bypassed.reason : null;
}

function heldBefore(holder: LaneHolderState, stuck: LandlordEvent): boolean {
  const since = epochMs(holder.acquiredAt);
  const told = epochMs(stuck.at);
  const samePid = stuck.numbers.pid == null || stuck.numbers.pid === holder.pid;
  return samePid && (since === null || told === null || since <= told);
}
