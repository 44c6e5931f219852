import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Later } from '../../../electron/core/gate/later.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('what is to be done after a while', () => {
  it('is done once, after one to two such whiles, in the order in which it was asked for', () => {
    const later = new Later(20);
    const done: string[] = [];
    later.add(() => done.push('first'));
    vi.advanceTimersByTime(19);
    later.add(() => done.push('second'));
    vi.advanceTimersByTime(20);
    expect(done).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(done).toEqual(['first', 'second']);
    later.add(() => done.push('third'));
    vi.advanceTimersByTime(19);
    expect(done).toHaveLength(2);
    vi.advanceTimersByTime(100);
    expect(done).toEqual(['first', 'second', 'third']);
  });

  it('is not done where it was dropped, however late', () => {
    const later = new Later(20);
    const done: string[] = [];
    const work = ['soon', 'late', 'kept'].map((name) => () => done.push(name));
    const [soon, late] = work.map((one) => later.add(one));
    if (soon !== undefined) soon.work = null;
    vi.advanceTimersByTime(20);
    if (late !== undefined) late.work = null;
    vi.advanceTimersByTime(100);
    expect(done).toEqual(['kept']);
  });

  it('takes one timer for all of it, and none where there is nothing left', () => {
    const later = new Later(20);
    for (let index = 0; index < 100; index += 1) later.add(() => undefined);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(100);
    expect(vi.getTimerCount()).toBe(0);
  });
});
