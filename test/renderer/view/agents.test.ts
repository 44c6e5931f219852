import { describe, expect, it } from 'vitest';
import { agentSlots } from '../../../renderer/view/agents.ts';
import type { AgentState, LandlordState } from '../../../shared/state.ts';
import { sampleState } from '../../support/fake-runtime.ts';

const AT = '2026-03-04T09:00:00.000Z';
const ago = (seconds: number): string => new Date(Date.parse(AT) - seconds * 1000).toISOString();

function agent(change: Partial<AgentState>): AgentState {
  return {
    id: 'gateway/writer',
    agent: 'writer',
    source: 'gateway',
    class: 'interactive',
    model: 'router/qwen-27b',
    backend: 'router',
    state: 'idle',
    since: ago(41),
    tokensPerS: null,
    tokens: null,
    kv: null,
    bookedBytes: null,
    deviceId: null,
    lastSwitchMs: null,
    queuePosition: null,
    weightsBytes: null,
    loadProgress: null,
    laneAgeMs: null,
    ...change,
  };
}

function slots(agents: readonly AgentState[], change: Partial<LandlordState> = {}) {
  return agentSlots({ ...sampleState(), at: AT, lanes: [], ...change, agents });
}

describe('agent slots', () => {
  it('puts whoever is at work first, and who waits in the order of the queue', () => {
    const order = slots([
      agent({ id: 'a', state: 'idle' }),
      agent({ id: 'b', state: 'deflected' }),
      agent({ id: 'c', state: 'waiting', queuePosition: 2 }),
      agent({ id: 'd', state: 'waiting', queuePosition: 1 }),
      agent({ id: 'e', state: 'generating' }),
    ]).map((slot) => slot.key);
    expect(order).toEqual(['e', 'd', 'c', 'b', 'a']);
  });

  it('says what it does and at what rate, and whose rate is past', () => {
    const [now] = slots([agent({ state: 'generating', tokensPerS: 31.4, tokens: 912 })]);
    expect(now).toMatchObject({ state: 'is generating', rate: '31', live: true, lamp: 'busy' });
    expect(now?.facts).toEqual(['qwen-27b', 'interactive', 'on router', '912 tokens in its last answer']);
    const [before] = slots([agent({ tokensPerS: 7.46 })]);
    expect(before).toMatchObject({ state: 'is idle', rate: '7.5', live: false });
  });

  it('says where the context of an engine’s agent is, and what bringing it back took', () => {
    const engine = { source: 'engine', class: null, backend: 'embedded' } as const;
    const [away] = slots([agent({ ...engine, kv: 'host', tokens: 2100, lastSwitchMs: 310, bookedBytes: 0 })]);
    expect(away?.facts).toEqual([
      'qwen-27b',
      'on embedded',
      'context in host memory',
      '2k tokens in its context',
      'came back in 0.3 s',
    ]);
    const [here] = slots([agent({ ...engine, kv: 'device', bookedBytes: 212e6, lastSwitchMs: 0 })]);
    expect(here?.facts).toContain('context on the card, 212 MB');
    // Only what is on the card can be put away, and only by the engine.
    expect([away?.canPutAway, here?.canPutAway]).toEqual([false, true]);
    expect(slots([agent({ kv: 'device' })])[0]?.canPutAway).toBe(false);
  });

  it('can put away weights that wait on the card for nobody else, and says how far a load is', () => {
    const engine = { source: 'engine', model: 'embedded/smol', kv: 'none', weightsBytes: 1e9 } as const;
    const one = agent({ ...engine, id: 'engine/one', agent: 'one', tokens: 0 });
    expect(slots([one])[0]).toMatchObject({ canPutAway: true, engineName: 'one' });
    // What another agent works with stays: putting this one away would give nothing.
    const two = agent({ ...engine, id: 'engine/two', agent: 'two', kv: 'device' });
    expect(slots([one, two]).map((slot) => [slot.key, slot.canPutAway])).toEqual([
      ['engine/one', false],
      ['engine/two', true],
    ]);
    const [loading] = slots([{ ...one, loadProgress: 0.404 }]);
    expect(loading?.facts).toContain('its model is loading, 40 %');
    expect(loading?.canPutAway).toBe(false);
    expect(slots([agent({})])[0]?.engineName).toBeNull();
  });

  it('leaves out what is not known, and never writes 0 for it', () => {
    const [slot] = slots([agent({ class: null, model: null, backend: null, since: null })]);
    expect(slot).toMatchObject({ facts: ['no model yet'], rate: null, sinceMs: null, laneSinceMs: null });
  });

  it('counts the lane’s age from its record, so that it does not jitter with each reading', () => {
    const lane = {
      backend: 'router',
      configured: true,
      path: '/x.lock',
      width: 1,
      held: true,
      waiting: 0,
      holders: [
        {
          pid: 1,
          command: null,
          session: 'writer',
          model: null,
          class: null,
          turn: null,
          acquiredAt: ago(40),
        },
      ],
    };
    const held = agent({ state: 'generating', laneAgeMs: 40_312 });
    expect(slots([held], { lanes: [lane] })[0]?.laneSinceMs).toBe(Date.parse(AT) - 40_000);
    expect(slots([held])[0]?.laneSinceMs).toBe(Date.parse(AT) - 40_000);
  });
});
