import { describe, expect, it } from 'vitest';
import { type ModelRow, modelsCard } from '../../../renderer/view/models.ts';
import { MODEL_TONES, toneOf } from '../../../renderer/view/tones.ts';
import type { LandlordState, ModelState } from '../../../shared/state.ts';
import { loadState } from '../../support/states.ts';

const fine = loadState('fine').state;

function rowOf(change: Partial<ModelState>): ModelRow {
  const first = fine.models[0];
  if (first === undefined) throw new Error('the fixture has a model');
  const card = modelsCard({ ...fine, models: [{ ...first, ...change }] });
  const row = [...card.active, ...card.inactive][0];
  if (row === undefined) throw new Error('a model gives a row');
  return row;
}

describe('models: one button by state', () => {
  it.each<[ModelState['status'], ModelRow['action']]>([
    ['unloaded', 'load'],
    ['failed', 'load'],
    ['loading', 'cancel'],
    ['loaded', 'unload'],
    ['sleeping', 'unload'],
    ['stopping', null],
  ])('%s → %s', (status, action) => {
    expect(rowOf({ status }).action).toBe(action);
  });

  it('asks before it cuts a request off, and only then', () => {
    expect(rowOf({ status: 'loaded', busy: true }).asksFirst).toBe(true);
    expect(rowOf({ status: 'loaded', busy: false }).asksFirst).toBe(false);
    expect(rowOf({ status: 'loading', busy: true }).asksFirst).toBe(false);
  });

  it('never calls a model idle whose busyness is unknown', () => {
    expect(rowOf({ status: 'loaded', busy: null }).status).toBe('loaded');
    expect(rowOf({ status: 'loaded', busy: false }).status).toBe('idle');
    expect(rowOf({ status: 'loaded', busy: true }).status).toBe('busy');
    expect(rowOf({ status: 'loading', loadProgress: 0.334 }).status).toBe('loading, 33 %');
  });

  it('tells a measured size from a predicted one, and from none', () => {
    expect(rowOf({ measuredBytes: 10.6e9, predictedBytes: 10e9 }).facts[0]).toBe('10.6 GB, predicted 10 GB');
    expect(rowOf({ measuredBytes: 10.6e9, predictedBytes: 10.6e9 }).facts[0]).toBe('10.6 GB');
    expect(rowOf({ measuredBytes: null, predictedBytes: 10e9 }).facts[0]).toBe('10 GB predicted');
    expect(rowOf({ status: 'loading', measuredBytes: 3e9, predictedBytes: 10e9 }).facts[0]).toBe(
      '10 GB predicted',
    );
    expect(rowOf({ measuredBytes: null, predictedBytes: null }).facts[0]).toBe('size unknown');
  });

  it('says when it leaves only where it may: not while busy, not when pinned', () => {
    const leavesAt = '2025-10-14T10:43:00.400Z';
    const idle = { status: 'loaded', busy: false, pinned: false, leavesAt } as const;
    expect(rowOf(idle).leavesAtMs).toBe(Date.parse('2025-10-14T10:43:00.000Z'));
    expect(rowOf({ ...idle, busy: true }).leavesAtMs).toBeNull();
    expect(rowOf({ ...idle, pinned: true }).leavesAtMs).toBeNull();
  });

  it('names the backend only where there are several, and the observed as observed', () => {
    const two = modelsCard(loadState('two-devices').state);
    expect(two.active.map((row) => row.backend)).toEqual(['ollama', 'router']);
    expect(two.active[0]?.facts).toContain('only observed');
    expect(modelsCard(fine).active.every((row) => row.backend === null)).toBe(true);
  });

  it('keeps the order of loaded ones whatever is used, and sorts the others by last use', () => {
    const order = (state: LandlordState): readonly string[] =>
      modelsCard(state).active.map((row) => row.name);
    const used = {
      ...fine,
      models: fine.models.map((model) => ({ ...model, busy: model.busy === null ? null : !model.busy })),
    };
    expect(order(used)).toEqual(order(fine));
    expect(modelsCard(fine).inactive.map((row) => row.name)).toEqual([
      'vision-8b',
      'qwen-27b',
      'bge-m3-batch',
    ]);
  });
});

describe('models: when there is little to show', () => {
  it('helps when there is no server, and when a server has no models', () => {
    expect(modelsCard(loadState('empty').state).empty).toBe('no-backend');
    const [backend] = fine.backends;
    if (backend === undefined) throw new Error('the fixture has a backend');
    expect(modelsCard({ ...fine, models: [] }).empty).toBe('no-models');
    expect(modelsCard({ ...fine, models: [], backends: [{ ...backend, status: 'down' }] }).empty).toBe(
      'no-backend',
    );
    expect(modelsCard(fine).empty).toBeNull();
  });

  it('offers to guard what was found, and says what does not answer', () => {
    const card = modelsCard(loadState('found-backend').state);
    expect(card.found).toEqual([
      { name: 'router-8080', text: 'Found router-8080 on 127.0.0.1:8080. The guards only observe it.' },
    ]);
    expect(card.down).toEqual(['big on 127.0.0.1:8081 does not answer. Connection refused.']);
    expect(modelsCard(fine).found).toEqual([]);
  });
});

describe('models: colours', () => {
  it('gives models that hold memory at once different colours while there are enough', () => {
    const first = fine.models[0];
    if (first === undefined) throw new Error('the fixture has a model');
    const models = Array.from(
      { length: 30 },
      (_, index): ModelState => ({
        ...first,
        id: `router/m${String(index).padStart(2, '0')}`,
        status: index % MODEL_TONES === 0 ? 'loaded' : 'unloaded',
      }),
    );
    const tones = toneOf({ models });
    const loaded = models.filter((model) => model.status === 'loaded');
    expect(new Set(loaded.map((model) => tones(model.id))).size).toBe(loaded.length);
  });

  it('keeps a colour when another model is used, and knows one for a stranger', () => {
    const earlier = toneOf(fine);
    const later = toneOf({ ...fine, models: fine.models.map((model) => ({ ...model, busy: true })) });
    for (const model of fine.models) expect(later(model.id)).toBe(earlier(model.id));
    expect(earlier('who/knows')).toBe('m0');
  });
});

describe('models: how long each stays, and why it left', () => {
  it('stays until needed where it is guarded and no idle rule would move it', () => {
    const idle = { status: 'loaded', busy: false, leavesAt: null, pinned: false } as const;
    expect(rowOf({ ...idle, guarded: 'on' }).stays).toBe(true);
    expect(rowOf({ ...idle, guarded: 'observe' }).stays).toBe(false);
    expect(rowOf({ ...idle, guarded: 'on', pinned: true }).stays).toBe(false);
    expect(rowOf({ ...idle, guarded: 'on', busy: true }).stays).toBe(false);
    const leaving = rowOf({ ...idle, guarded: 'on', leavesAt: '2026-03-04T09:02:00.000Z' });
    expect([leaving.stays, leaving.leavesAtMs]).toEqual([false, Date.parse('2026-03-04T09:02:00.000Z')]);
  });

  it('says why it was unloaded the last time, while it is away', () => {
    const lastEviction = {
      at: '2026-03-04T08:00:00.000Z',
      reason: 'The floor was broken.',
      freedBytes: 6.2e9,
    };
    expect(rowOf({ status: 'unloaded', lastEviction }).evicted).toEqual({
      at: lastEviction.at,
      reason: 'The floor was broken. 6.2 GB came back.',
    });
    expect(rowOf({ status: 'loaded', lastEviction }).evicted).toBeNull();
  });
});
