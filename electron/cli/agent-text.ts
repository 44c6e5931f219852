import { formatBytes, formatDuration } from '../../shared/format.ts';
import type { AgentActivity, AgentState } from '../../shared/state.ts';
import { columns, paint, plain, type Terminal, type Tone } from './terminal.ts';

const TONES: Readonly<Partial<Record<AgentActivity, Tone>>> = {
  generating: 'good',
  waiting: 'warning',
  deflected: 'warning',
};

const PLACES: Readonly<Record<NonNullable<AgentState['kv']>, string>> = {
  device: 'KV on the device',
  host: 'KV in host memory',
  file: 'KV in a file',
  none: 'no KV kept',
};

/** One line an agent: who, what it does, with which model, and where its keys and values are. */
export function agentLines(
  agents: readonly AgentState[],
  nowMs: number,
  look: Pick<Terminal, 'color'>,
): string[] {
  const rows = agents.map((agent) => {
    const tone = TONES[agent.state];
    const state = stateText(agent, nowMs);
    return [
      plain(agent.agent),
      agent.class ?? '',
      tone === undefined ? state : paint(look, tone, state),
      agent.model === null ? '' : plain(agent.model),
      agent.tokensPerS === null ? '' : `${agent.tokensPerS.toFixed(1)} tokens/s`,
      plain(detailText(agent)),
    ];
  });
  return columns(rows, [4]);
}

function stateText(agent: AgentState, nowMs: number): string {
  const forLong = agent.since === null ? '' : ` ${formatDuration(nowMs - Date.parse(agent.since))}`;
  const place = agent.queuePosition === null ? '' : `, ${agent.queuePosition}. in the queue`;
  return `${agent.state}${forLong}${place}`;
}

function detailText(agent: AgentState): string {
  const words = [
    agent.loadProgress === null ? '' : `loading its model, ${Math.round(agent.loadProgress * 100)} %`,
    agent.tokens === null ? '' : `${agent.tokens} tokens`,
    agent.kv === null ? '' : PLACES[agent.kv],
    agent.bookedBytes === null || agent.bookedBytes === 0 ? '' : formatBytes(agent.bookedBytes),
    agent.lastSwitchMs === null ? '' : `switched in ${formatDuration(agent.lastSwitchMs)}`,
    agent.laneAgeMs === null ? '' : `has the lane for ${formatDuration(agent.laneAgeMs)}`,
  ];
  return words.filter((word) => word !== '').join(', ');
}
