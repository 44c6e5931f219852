import { describe, expect, it } from 'vitest';
import { type LaneCard, laneCards } from '../../../renderer/view/lanes.ts';
import type { LandlordEvent } from '../../../shared/events.ts';
import type { AgentState, LandlordState, LaneHolderState, LaneState } from '../../../shared/state.ts';
import { sampleModel, sampleState } from '../../support/fake-runtime.ts';

const AT = '2026-03-04T09:00:00.000Z';
const ago = (seconds: number): string => new Date(Date.parse(AT) - seconds * 1000).toISOString();

const HOLDER: LaneHolderState = {
  pid: 42,
  command: 'python3 agent.py',
  session: 'writer',
  model: 'coder-9b',
  class: 'interactive',
  turn: 't1',
  acquiredAt: ago(41),
};

function lane(change: Partial<LaneState>): LaneState {
  return {
    backend: 'router',
    configured: true,
    path: '/gates/127.0.0.1_8080.lock',
    width: 1,
    held: false,
    holders: [],
    waiting: 0,
    ...change,
  };
}

function event(change: Partial<LandlordEvent>): LandlordEvent {
  return {
    id: 1,
    at: ago(10),
    kind: 'deflected',
    reason: 'Told.',
    backend: 'router',
    numbers: {},
    ...change,
  };
}

function cards(
  change: Partial<LaneState>,
  events: readonly LandlordEvent[] = [],
  state: Partial<LandlordState> = {},
): readonly LaneCard[] {
  return laneCards({ ...sampleState(), at: AT, models: [], lanes: [lane(change)], ...state }, events);
}

function only(...given: Parameters<typeof cards>): LaneCard {
  const [card] = cards(...given);
  if (card === undefined) throw new Error('no card');
  return card;
}

function agent(name: string, queuePosition: number): AgentState {
  return {
    id: name,
    agent: name,
    source: 'gateway',
    class: null,
    model: null,
    backend: 'router',
    state: 'waiting',
    since: null,
    tokensPerS: null,
    tokens: null,
    kv: null,
    bookedBytes: null,
    deviceId: null,
    lastSwitchMs: null,
    queuePosition,
    weightsBytes: null,
    loadProgress: null,
    laneAgeMs: null,
  };
}

const texts = (card: LaneCard): string[] =>
  card.rows.map(({ name, text }) => (name === null ? text : `${name} ${text}`));

describe('lanes: shown only where there is something to say', () => {
  it.each([
    ['set in the config', { configured: true }, 1],
    ['held', { configured: false, held: true, holders: [HOLDER] }, 1],
    ['held in one of its slots', { configured: false, width: 3, holders: [HOLDER] }, 1],
    ['held by nobody who can be seen', { configured: false, held: true }, 1],
    ['waited for', { configured: false, waiting: 1 }, 1],
    ['neither set nor used', { configured: false }, 0],
    ['neither set nor to be told', { configured: false, held: null }, 0],
  ] satisfies readonly (readonly [string, Partial<LaneState>, number])[])('%s', (_what, change, count) => {
    expect(cards(change)).toHaveLength(count);
  });
});

describe('lanes: whose turn it is', () => {
  it('says who holds it, since when, for what, and how many wait', () => {
    const card = only({ held: true, holders: [HOLDER], waiting: 2 });
    expect(card).toMatchObject({
      title: 'Lane · router on 127.0.0.1:8080',
      trouble: null,
      beside: '2 turns wait',
    });
    expect(texts(card)).toEqual(['writer has the lane']);
    expect(card.rows[0]).toMatchObject({
      lamp: 'busy',
      facts: ['coder-9b', 'interactive', 'python3 agent.py (pid 42)'],
      sinceMs: Date.parse(AT) - 41_000,
    });
  });

  it('names a program by what it runs, without its folders and options', () => {
    const programOf = (command: string): unknown =>
      only({ held: true, holders: [{ ...HOLDER, command }] }).rows[0]?.facts.at(-1);
    expect(programOf('/usr/bin/node --no-warnings src/agents/writer.ts 3')).toBe('node writer.ts (pid 42)');
    expect(programOf('-bash')).toBe('pid 42');
    expect(programOf(`python3 ${'a'.repeat(90)}.py`)).toBe(`python3 ${'a'.repeat(31)}… (pid 42)`);
  });

  it('names those who wait, as far as they have names, in the order of their queue', () => {
    const agents = [
      agent('nightly', 2),
      agent('reviewer', 1),
      agent('cron', 3),
      { ...agent('other', 1), backend: 'ollama' },
    ];
    expect(only({ waiting: 1 }, [], { agents: agents.slice(1, 2) }).beside).toBe('reviewer waits');
    expect(only({ waiting: 2 }, [], { agents: agents.slice(0, 2) }).beside).toBe('reviewer, nightly wait');
    // Those whom the gateway holds back are not at the lock yet.
    expect(only({ waiting: 1 }, [], { agents }).beside).toBe('reviewer, nightly, 1 more wait');
    expect(only({ waiting: 4 }, [], { agents }).beside).toBe('reviewer, nightly, 2 more wait');
    expect(only({}, [], { agents }).beside).toBeNull();
  });

  it('says free, and how many of a wide lane are', () => {
    expect(texts(only({}))).toEqual(['Free: the next turn gets it at once.']);
    const wide = only({ width: 3, holders: [HOLDER] });
    expect(texts(wide)).toEqual(['writer has the lane']);
    expect(wide.beside).toBe('2 of 3 free');
  });

  it('says what it does not know, and never takes it for free (rule 12)', () => {
    const stranger = { ...HOLDER, session: null, model: null, class: null, acquiredAt: null };
    const [row] = only({ held: true, holders: [stranger] }).rows;
    expect(row).toMatchObject({
      name: 'python3 agent.py (pid 42)',
      facts: ['session unknown'],
      sinceMs: null,
      age: 'age unknown',
    });
    const unseen = only({ held: true, holders: [{ ...stranger, pid: null, command: null }] });
    expect(unseen.rows[0]?.name).toBe('a process that can not be seen');
    expect(texts(only({ held: true }))).toEqual(['In use by a process that can not be seen from here.']);
    expect(texts(only({ held: null }))).toEqual(['Whether it is in use can not be seen from here.']);
  });

  it('says who went elsewhere lately, once each, and not of one that has the lane by now', () => {
    const busy = { held: true, holders: [HOLDER] };
    const events = [
      event({ session: 'nightly', at: ago(700) }),
      event({ session: 'cron', at: ago(300) }),
      event({ session: 'cron', at: ago(120) }),
      event({ session: 'writer', at: ago(100) }),
      event({ session: 'other', backend: 'ollama' }),
    ];
    const card = only(busy, events);
    expect(texts(card)).toEqual(['writer has the lane', 'cron was sent elsewhere']);
    expect(card.rows[1]).toMatchObject({ sinceMs: Date.parse(AT) - 120_000 });
  });
});

describe('lanes: what a person should see to', () => {
  const stuck = event({ kind: 'lane_stuck', reason: 'It is stuck.', numbers: { pid: 42 } });
  const bypassed = event({ kind: 'lane_bypassed', reason: 'It is used outside.' });
  const busy = { models: [sampleModel({ id: 'router/m', status: 'loaded', busy: true })] };

  it('a stuck lane, until its holder is another', () => {
    const held = { held: true, holders: [HOLDER] };
    expect(only(held, [stuck]).trouble).toBe('It is stuck.');
    expect(only({ held: true, holders: [{ ...HOLDER, pid: 43 }] }, [stuck]).trouble).toBeNull();
    expect(only({ held: true, holders: [{ ...HOLDER, acquiredAt: ago(1) }] }, [stuck]).trouble).toBeNull();
    expect(only({}, [stuck]).trouble).toBeNull();
    expect(only(held, [{ ...stuck, backend: 'ollama' }]).trouble).toBeNull();
  });

  it('one that is gone round, while it is', () => {
    expect(only({}, [bypassed], busy).trouble).toBe('It is used outside.');
    expect(only({}, [bypassed]).trouble).toBeNull();
    expect(only({ held: true, holders: [HOLDER] }, [bypassed], busy).trouble).toBeNull();
    expect(only({ held: null }, [bypassed], busy).trouble).toBeNull();
  });
});
