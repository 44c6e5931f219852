import { describe, expect, it } from 'vitest';
import type { LandlordState } from '../../shared/state.ts';
import { agentLines, holderOf, userOf } from '../../shared/tray-agents.ts';
import { sampleAgent, sampleModel } from '../support/fake-runtime.ts';

const SINCE = '2026-03-04T09:00:00.000Z';
const busy = (id: string) => sampleModel({ id, status: 'loaded', busy: true });

function lane(session: string | null, model: string | null): LandlordState['lanes'][number] {
  const holder = {
    pid: 7,
    command: null,
    session,
    model,
    class: null,
    turn: null,
    acquiredAt: SINCE,
  };
  return {
    backend: 'router',
    configured: true,
    path: '/l',
    width: 1,
    held: true,
    holders: [holder],
    waiting: 0,
  };
}

describe('tray agents: who uses a busy model', () => {
  it('is whom its lane names, alone or by the model', () => {
    const models = [busy('router/27B')];
    expect(userOf(busy('router/27B'), { models, lanes: [lane('writer', null)], agents: [] })).toEqual({
      name: 'writer',
      since: SINCE,
    });
    expect(holderOf(busy('router/27B'), { models, lanes: [lane('writer', '27B')] })?.session).toBe('writer');
  });

  it('is nobody by a guess: of two busy ones the lane’s turn is neither’s', () => {
    const models = [busy('router/27B'), busy('router/other')];
    expect(holderOf(busy('router/other'), { models, lanes: [lane('writer', null)] })).toBeNull();
    expect(
      holderOf(busy('router/27B'), { models: [busy('router/27B')], lanes: [lane('w', 'other')] }),
    ).toBeNull();
  });

  it('is the one agent that generates on it, where no lane says', () => {
    const models = [busy('router/27B')];
    const writer = sampleAgent({
      agent: 'writer',
      model: 'router/27B',
      state: 'generating',
      since: SINCE,
    });
    expect(userOf(busy('router/27B'), { models, lanes: [], agents: [writer] })).toEqual({
      name: 'writer',
      since: SINCE,
    });
    const second = { ...writer, agent: 'second' };
    expect(userOf(busy('router/27B'), { models, lanes: [], agents: [writer, second] })).toBeNull();
  });
});

describe('tray agents: who else is at work', () => {
  it('is told in one line: who generates, and who waits', () => {
    const agents = [
      sampleAgent({ agent: 'smol', state: 'generating' }),
      sampleAgent({ agent: 'indexer', state: 'waiting' }),
      sampleAgent({ agent: 'planner', state: 'waiting' }),
      sampleAgent({ agent: 'idle' }),
      sampleAgent({ agent: 'away', state: 'deflected' }),
    ];
    expect(agentLines({ models: [], lanes: [], agents })).toEqual([
      'Agents: smol generating; indexer, planner waiting',
    ]);
    expect(agentLines({ models: [], lanes: [], agents: agents.slice(3) })).toEqual([]);
  });

  it('leaves out whom a busy model’s line names, and counts beyond three', () => {
    const writer = sampleAgent({ agent: 'writer', model: 'router/27B', state: 'generating' });
    const models = [busy('router/27B')];
    expect(agentLines({ models, lanes: [], agents: [writer] })).toEqual([]);
    expect(agentLines({ models, lanes: [lane('writer', null)], agents: [writer] })).toEqual([]);
    const many = ['a', 'b', 'c', 'd', 'e'].map((agent) => sampleAgent({ agent, state: 'waiting' }));
    expect(agentLines({ models: [], lanes: [], agents: many })).toEqual([
      'Agents: a, b, c and 2 more waiting',
    ]);
  });
});
