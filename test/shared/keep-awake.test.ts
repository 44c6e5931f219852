import { describe, expect, it } from 'vitest';
import { turnInProgress } from '../../shared/keep-awake.ts';
import type { LandlordState } from '../../shared/state.ts';
import { sampleModel } from '../support/fake-runtime.ts';

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
    expect(turnInProgress({ models, lanes: [] })).toBe('27B');
    expect(turnInProgress({ models, lanes: [lane({})] })).toBe('27B for writer');
  });

  it('goes by a held lane between two requests, too', () => {
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: false })];
    expect(turnInProgress({ models, lanes: [lane({})] })).toBe('writer');
    expect(turnInProgress({ models, lanes: [lane({ holders: [] })] })).toBe('router');
  });

  it('does not go by what is not known', () => {
    const models = [sampleModel({ id: 'router/27B', status: 'loaded', busy: null })];
    expect(turnInProgress({ models, lanes: [lane({ held: null, holders: [] })] })).toBeNull();
    expect(turnInProgress(null)).toBeNull();
  });
});
