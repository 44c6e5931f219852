import { describe, expect, it } from 'vitest';
import { turnInProgress } from '../../shared/keep-awake.ts';
import type { LandlordState } from '../../shared/state.ts';
import { sampleAgent, sampleModel } from '../support/fake-runtime.ts';

const holder = {
  pid: 7,
  command: null,
  session: 'writer',
  model: null,
  class: null,
  turn: null,
  acquiredAt: null,
};
const lane = (change: Partial<LandlordState['lanes'][number]>): LandlordState['lanes'][number] => ({
  backend: 'router',
  configured: true,
  path: '/l',
  width: 1,
  held: true,
  holders: [holder],
  waiting: 0,
  ...change,
});

describe('keep awake: while somebody is in a turn', () => {
  it('goes by busy models, and names their session', () => {
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: true })];
    expect(turnInProgress({ models, agents: [], lanes: [] })).toBe('27B');
    expect(turnInProgress({ models, agents: [], lanes: [lane({})] })).toBe('27B for writer');
  });

  it('goes by a held lane between two requests, too', () => {
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: false })];
    expect(turnInProgress({ models, agents: [], lanes: [lane({})] })).toBe('writer');
    expect(turnInProgress({ models, agents: [], lanes: [lane({ holders: [] })] })).toBe('router');
  });

  it('goes by agents that generate, whose models need not be anybody’s backend', () => {
    const smol = sampleAgent({ agent: 'smol', model: 'embedded/tiny', state: 'generating' });
    const idle = sampleAgent({ agent: 'other', state: 'idle' });
    expect(turnInProgress({ models: [], lanes: [], agents: [smol, idle] })).toBe('tiny for smol');
    expect(turnInProgress({ models: [], lanes: [], agents: [idle] })).toBeNull();
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: true })];
    const writer = sampleAgent({ agent: 'writer', model: 'router/27B', state: 'generating' });
    expect(turnInProgress({ models, lanes: [], agents: [writer] })).toBe('27B for writer');
  });

  it('does not go by what is not known', () => {
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: null })];
    expect(turnInProgress({ models, agents: [], lanes: [lane({ held: null, holders: [] })] })).toBeNull();
    expect(turnInProgress(null)).toBeNull();
  });
});
