/** The agent slots: who uses models, what each is doing, and where its context is. Pure. */
import { formatDuration } from '../../shared/format.ts';
import type { AgentState, LandlordState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { bytesText, epochMs, shortName, tokensText } from './figures.ts';

export interface AgentSlot {
  readonly key: string;
  readonly name: string;
  readonly lamp: 'busy' | 'idle' | 'asleep' | 'off';
  readonly state: string;
  /** Large beside the name; null: none was measured. */
  readonly rate: string | null;
  /** It generates now; else the rate is that of its last answer. */
  readonly live: boolean;
  readonly facts: readonly string[];
  /** Epoch ms since when it is in its state; null: not known. */
  readonly sinceMs: number | null;
  /** Epoch ms since when it has the lane; null: it has none. */
  readonly laneSinceMs: number | null;
  /** Its context or its weights are on the card, from where it can be put away. */
  readonly canPutAway: boolean;
  /** As the engine knows it, which can forget it; null: it is no agent of the engine. */
  readonly engineName: string | null;
  /** `812`, of its conversation. */
  readonly tokens: string;
}

const words = strings.agents;

const LAMPS = { generating: 'busy', waiting: 'asleep', deflected: 'off', idle: 'idle' } as const;
const ORDER = { generating: 0, waiting: 1, deflected: 2, idle: 3 } as const;

/** Those at work first, then by name: a slot changes its place only when its agent's state does. */
export function agentSlots(state: LandlordState): readonly AgentSlot[] {
  return [...state.agents]
    .sort(
      (a, b) =>
        ORDER[a.state] - ORDER[b.state] ||
        (a.queuePosition ?? 0) - (b.queuePosition ?? 0) ||
        (a.id < b.id ? -1 : 1),
    )
    .map((agent) => slotOf(agent, state));
}

function slotOf(agent: AgentState, state: LandlordState): AgentSlot {
  return {
    key: agent.id,
    name: agent.agent,
    lamp: LAMPS[agent.state],
    state: stateText(agent),
    rate: agent.tokensPerS === null ? null : rateText(agent.tokensPerS),
    live: agent.state === 'generating',
    facts: factsOf(agent),
    sinceMs: wholeSeconds(epochMs(agent.since)),
    laneSinceMs: laneSince(agent, state),
    canPutAway: holdsOfItsOwn(agent, state),
    engineName: agent.source === 'engine' ? agent.agent : null,
    tokens: tokensText(agent.tokens ?? 0),
  };
}

/** Weights that another agent works with stay whatever is done with this one. */
function holdsOfItsOwn(agent: AgentState, state: LandlordState): boolean {
  if (agent.source !== 'engine' || agent.loadProgress !== null) return false;
  if (agent.kv === 'device') return true;
  const others = state.agents.filter(
    (other) => other.source === 'engine' && other.model === agent.model && other.id !== agent.id,
  );
  return (agent.weightsBytes ?? 0) > 0 && !others.some((other) => other.kv === 'device');
}

function stateText({ state, queuePosition }: AgentState): string {
  if (state !== 'waiting' || queuePosition === null) return words.state[state];
  return queuePosition === 1 ? words.state.next : words.place(queuePosition);
}

/** `31`, `7.5`: whole from ten on, so that it does not race. */
function rateText(perS: number): string {
  return perS >= 10 ? String(Math.round(perS)) : perS.toFixed(1);
}

function factsOf(agent: AgentState): readonly string[] {
  const facts: string[] = [];
  facts.push(agent.model === null ? words.noModel : shortName(agent.model));
  if (agent.class !== null) facts.push(words.class[agent.class]);
  if (agent.backend !== null) facts.push(words.onBackend(agent.backend));
  if (agent.state === 'deflected') facts.push(words.deflectedWhy);
  if (agent.loadProgress !== null) facts.push(words.loading(`${Math.round(agent.loadProgress * 100)} %`));
  if (agent.kv !== null) {
    const where = words.kv[agent.kv];
    facts.push(
      agent.kv === 'device' && agent.bookedBytes !== null
        ? words.kvBytes(where, bytesText(agent.bookedBytes))
        : where,
    );
  }
  if (agent.tokens !== null) {
    const count = tokensText(agent.tokens);
    facts.push(agent.source === 'engine' ? words.tokens(count) : words.answered(count));
  }
  if (agent.lastSwitchMs !== null && agent.lastSwitchMs > 0)
    facts.push(words.switched(formatDuration(agent.lastSwitchMs)));
  return facts;
}

/** The lane's own record where it tells, since an age is another figure with each reading. */
function laneSince(agent: AgentState, state: LandlordState): number | null {
  if (agent.laneAgeMs === null) return null;
  const holder = state.lanes.flatMap((lane) => lane.holders).find((one) => one.session === agent.agent);
  const atMs = epochMs(state.at);
  return wholeSeconds(epochMs(holder?.acquiredAt ?? null) ?? (atMs === null ? null : atMs - agent.laneAgeMs));
}

function wholeSeconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms / 1000) * 1000;
}
