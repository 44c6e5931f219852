import { describe, expect, it } from 'vitest';
import { agentLines } from '../../electron/cli/agent-text.ts';
import type { AgentState } from '../../shared/state.ts';

const NOW = Date.parse('2026-03-04T10:00:00.000Z');
const agent: AgentState = {
  id: 'engine/smol',
  agent: 'smol',
  source: 'engine',
  class: 'interactive',
  model: 'embedded/smol',
  backend: 'embedded',
  state: 'generating',
  since: '2026-03-04T09:59:58.000Z',
  tokensPerS: 31.42,
  tokens: 512,
  kv: 'device',
  bookedBytes: 20_000_000,
  deviceId: 'sim:0',
  lastSwitchMs: 12,
  queuePosition: null,
  weightsBytes: null,
  loadProgress: null,
  laneAgeMs: null,
};
const caller: AgentState = {
  ...agent,
  id: 'gateway/writer',
  agent: 'writer',
  source: 'gateway',
  state: 'waiting',
  since: null,
  tokensPerS: null,
  tokens: null,
  kv: null,
  bookedBytes: null,
  lastSwitchMs: null,
  queuePosition: 2,
};

describe('agents in `landlord status`', () => {
  it('says who does what with which model, and where its keys and values are', () => {
    const [first, second] = agentLines([agent, caller], NOW, { color: false });
    for (const part of [
      'smol',
      'interactive',
      'generating 2.0 s',
      'embedded/smol',
      '31.4 tokens/s',
      '512 tokens',
      'KV on the device',
      '20 MB',
      'switched in',
    ])
      expect(first).toContain(part);
    expect(second).toContain('waiting, 2. in the queue');
    const [loading] = agentLines([{ ...agent, loadProgress: 0.4 }], NOW, { color: false });
    expect(loading).toContain('loading its model, 40 %');
    expect(first).not.toContain('loading');
    // What is not known is left out, and never shown as 0.
    expect(second).not.toMatch(/tokens|KV| 0/);
  });

  it('writes no control characters of a caller’s name to the terminal', () => {
    expect(agentLines([{ ...caller, agent: 'a\u001b[2Jb' }], NOW, { color: false })[0]).not.toContain(
      '\u001b',
    );
  });
});
