import type { AgentState } from '../../../../shared/state.ts';
import type { ToIso } from '../../loop/state.ts';
import type { Agent } from './agent.ts';
import type { DeviceLine } from './desk-api.ts';
import type { DeskWorld } from './desk-world.ts';
import { modelName } from './shelf.ts';

/** A device with what agents have of it, for STATUS. */
export function deviceLine(
  { ledger, clock }: Pick<DeskWorld, 'ledger' | 'clock'>,
  agents: readonly Agent[],
  deviceId: string,
): DeviceLine {
  const book = ledger.book(deviceId, clock.monotonicMs());
  const here = agents.filter((agent) => agent.model.deviceId === deviceId);
  return {
    deviceId,
    maxBytes: book?.capBytes ?? null,
    allocatedBytes: book?.bookedBytes ?? 0,
    freeBytes: book?.freeBytes ?? null,
    floorBytes: book?.floorBytes ?? null,
    agents: here.length,
    liveContexts: here.filter((agent) => agent.live !== null).length,
  };
}

/** An agent of the engine as others see it. */
export function agentState(
  agent: Agent,
  now: {
    /** In the queue, from 0; Infinity: not in it. */
    readonly place: number;
    readonly bookedBytes: number;
    readonly weightsBytes: number;
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
    weightsBytes: now.weightsBytes,
    loadProgress: agent.model.progress,
    deviceId: agent.model.deviceId,
    lastSwitchMs: agent.lastSwitchMs,
    queuePosition: isWaiting ? now.place + 1 : null,
    laneAgeMs: null,
  };
}
