/** Who uses which model, as far as lanes and agents tell, and who else is at work. Pure. */
import type { AgentState, LandlordState, LaneHolderState, ModelState } from './state.ts';

/** `router/qwen-27b` → `qwen-27b`. */
export function shortModel(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

export function isBusy(model: ModelState): boolean {
  return model.status === 'loaded' && model.busy === true;
}

export interface ModelUser {
  /** A session's or an agent's name; null: a turn without one. */
  readonly name: string | null;
  /** ISO 8601; null: not known. */
  readonly since: string | null;
}

type Seen = Pick<LandlordState, 'models' | 'lanes' | 'agents'>;

/** The turn that a busy model serves, where its lane or an agent says so; null: nobody says. */
export function userOf(model: ModelState, state: Seen): ModelUser | null {
  const holder = holderOf(model, state);
  if (holder !== null) return { name: holder.session, since: holder.acquiredAt };
  const [only, ...more] = state.agents.filter((agent) => isGenerating(agent) && agent.model === model.id);
  return only === undefined || more.length > 0 ? null : { name: only.agent, since: only.since };
}

/** By the model's name in the lane, or as the only one busy there. */
export function holderOf(
  model: ModelState,
  state: Pick<LandlordState, 'models' | 'lanes'>,
): LaneHolderState | null {
  const holders = state.lanes
    .filter((lane) => lane.backend === model.backend)
    .flatMap((lane) => lane.holders);
  const named = holders.find(
    (holder) => holder.model !== null && [model.id, shortModel(model.id)].includes(holder.model),
  );
  if (named !== undefined) return named;
  const alone = state.models.filter((other) => other.backend === model.backend && isBusy(other)).length === 1;
  const [only] = holders;
  return alone && holders.length === 1 && only?.model === null ? only : null;
}

/** Agents that generate and whom neither a busy model's line nor a lane's holder names. */
export function otherGenerating(state: Seen): readonly AgentState[] {
  const named = new Set([
    ...state.models.filter(isBusy).flatMap((model) => userOf(model, state)?.name ?? []),
    ...state.lanes.flatMap((lane) => lane.holders.flatMap((holder) => holder.session ?? [])),
  ]);
  return state.agents.filter((agent) => isGenerating(agent) && !named.has(agent.agent));
}

/** `Agents: smol generating; indexer, planner waiting`; nothing while nobody is, but for who is named elsewhere. */
export function agentLines(state: Seen): readonly string[] {
  const parts = [
    someOf(otherGenerating(state), 'generating'),
    someOf(
      state.agents.filter((agent) => agent.state === 'waiting'),
      'waiting',
    ),
  ].filter((part) => part !== '');
  return parts.length === 0 ? [] : [`Agents: ${parts.join('; ')}`];
}

const MOST_NAMES = 3;

function someOf(agents: readonly AgentState[], what: string): string {
  if (agents.length === 0) return '';
  const names = agents.slice(0, MOST_NAMES).map((agent) => agent.agent);
  const more = agents.length - names.length;
  return `${names.join(', ')}${more === 0 ? '' : ` and ${more} more`} ${what}`;
}

function isGenerating(agent: AgentState): boolean {
  return agent.state === 'generating';
}
