import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../../electron/core/events/request-record.ts';
import type { Flight } from '../../../electron/core/gateway/in-flight.ts';
import { type CallerSight, GatewayAgents } from '../../../electron/core/loop/gateway-agents.ts';
import type { LaneState } from '../../../shared/state.ts';

const NOW = 1_000_000;
const record = (change: Partial<RequestRecord>): RequestRecord => ({
  atMs: 0,
  model: 'router/a',
  backend: 'router',
  agent: 'writer',
  class: 'interactive',
  route: 'local',
  reason: null,
  status: 200,
  promptTokens: 5,
  generatedTokens: 40,
  waitedMs: 0,
  firstByteMs: 100,
  totalMs: 1_100,
  generatedMs: 1_000,
  ...change,
});
const flight = (change: Partial<Flight>): Flight => ({
  id: 1,
  modelId: 'router/a',
  deviceId: 'sim:0',
  class: 'batch',
  caller: 'writer',
  sinceMs: NOW - 500,
  ...change,
});
const lane = (session: string | null): LaneState => ({
  backend: 'router',
  configured: true,
  path: '',
  width: 1,
  held: session !== null,
  holders:
    session === null
      ? []
      : [
          {
            pid: 1,
            command: null,
            session,
            model: null,
            class: null,
            turn: null,
            acquiredAt: new Date(NOW - 300).toISOString(),
          },
        ],
  waiting: 0,
});
const sight = (change: Partial<CallerSight>): CallerSight => ({
  flights: [],
  lanes: [],
  models: [{ id: 'router/a', status: 'loaded' }],
  nowMs: NOW,
  epochMs: NOW,
  iso: (atMs) => new Date(atMs).toISOString(),
  ...change,
});

describe('callers of the gateway as agents', () => {
  it('says of one that asks nothing what its last answer was like', () => {
    const agents = new GatewayAgents();
    agents.note(record({}), NOW - 10);
    expect(agents.list(sight({}))).toEqual([
      expect.objectContaining({
        id: 'gateway/writer',
        state: 'idle',
        tokensPerS: 40,
        tokens: 40,
        kv: null,
        weightsBytes: null,
        loadProgress: null,
        laneAgeMs: null,
        backend: 'router',
      }),
    ]);
    agents.note(record({ route: 'fallback', backend: 'cloud' }), NOW - 5);
    expect(agents.list(sight({}))[0]?.state).toBe('deflected');
  });

  it('tells who has the lane from who waits for it', () => {
    const agents = new GatewayAgents();
    const both = { flights: [flight({}), flight({ id: 2, caller: 'indexer' })], lanes: [lane('writer')] };
    expect(agents.list(sight(both)).map(({ agent, state, laneAgeMs }) => [agent, state, laneAgeMs])).toEqual([
      ['indexer', 'waiting', null],
      ['writer', 'generating', 300],
    ]);
  });

  it('takes a caller of a loaded model without a lane for generating, of one that loads for waiting', () => {
    const agents = new GatewayAgents();
    expect(agents.list(sight({ flights: [flight({})] }))[0]?.state).toBe('generating');
    const loading = { flights: [flight({})], models: [{ id: 'router/a', status: 'loading' as const }] };
    expect(agents.list(sight(loading))[0]?.state).toBe('waiting');
  });

  it('knows nobody without a name, and forgets who has long asked nothing', () => {
    const agents = new GatewayAgents();
    agents.note(record({ agent: null }), NOW);
    agents.note(record({}), NOW - 3_600_001);
    expect(agents.list(sight({ flights: [flight({ caller: null })] }))).toEqual([]);
    for (let count = 0; count < 100; count += 1) agents.note(record({ agent: `agent-${count}` }), NOW);
    expect(agents.list(sight({}))).toHaveLength(64);
  });
});
