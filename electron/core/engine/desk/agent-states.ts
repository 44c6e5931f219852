import type { AgentState } from '../../../../shared/state.ts';
import type { ToIso } from '../../loop/state.ts';
import type { Agent } from './agent.ts';
import { modelName } from './shelf.ts';

/** An agent of the engine as others see it. */
export function agentState(
  agent: Agent,
  now: {
    /** In the queue, from 0; Infinity: not in it. */
    readonly place: number;
    readonly bookedBytes: number;
    readonly iso: ToIso;
  },
): AgentState {
  const isWaiting = Number.isFinite(now.place);
  return {
    id: `engine/${agent.name}`,
    agent: agent.name,
    source: 'engine',
    class: agent.class,
    model: modelName(agent.model),
    backend: 'embedded',
    state: agent.busy ? 'generating' : isWaiting ? 'waiting' : 'idle',
    since: now.iso(agent.stateSinceMs),
    tokensPerS: agent.tokensPerS,
    tokens: agent.tokens.length,
    kv: agent.live !== null ? 'device' : (agent.saved?.place ?? 'none'),
    bookedBytes: now.bookedBytes,
    deviceId: agent.model.deviceId,
    lastSwitchMs: agent.lastSwitchMs,
    queuePosition: isWaiting ? now.place + 1 : null,
    laneAgeMs: null,
  };
}
