import { describe, expect, it } from 'vitest';
import {
  type Activity,
  atRest,
  type CpuReading,
  inTransit,
  type MetricsEvidence,
  observe,
  parseMetrics,
  UNSEEN,
} from '../../../electron/core/backends/activity.ts';

function cpu(atMs: number, cpuMs: number, change: Partial<CpuReading> = {}): CpuReading {
  return { pid: 7, startTimeTicks: 70, atMs, cpuMs, ...change };
}

/** Looks once a second, with the CPU milliseconds used in each second. */
function play(
  usedMs: readonly (number | null)[],
  metrics: MetricsEvidence = null,
  from = UNSEEN,
): Activity[] {
  let total = 0;
  let state = from;
  return usedMs.map((used, second) => {
    total += used ?? 0;
    state = observe(state, second * 1000, used === null ? null : cpu(second * 1000, total), metrics);
    return state;
  });
}

const busyOf = (states: readonly Activity[]) => states.map((state) => state.busy);

describe('busy and idle by CPU time', () => {
  it('is unknown at first sight, busy when it computes, idle only after a while of quiet', () => {
    expect(busyOf(play([0, 500, 400, 0, 0, 0, 0]))).toEqual([null, true, true, true, true, false, false]);
  });

  it('a share of 4 % is work: a model on a GPU uses little', () => {
    expect(busyOf(play([0, 40])).at(-1)).toBe(true);
  });

  it('between quiet and busy nothing is concluded, and never idle', () => {
    expect(busyOf(play([0, 20, 20, 20, 20, 20])).at(-1)).toBeNull();
  });

  it('is unknown, never idle, where the process can not be read', () => {
    expect(busyOf(play([0, 0, 0, 0, null, null]))).toEqual([null, null, null, false, null, null]);
  });

  it('starts anew with another process under the same pid', () => {
    const before = play([0, 0, 0, 0]).at(-1) ?? UNSEEN;
    const other = cpu(4000, 10_000, { startTimeTicks: 99 });
    expect(observe(before, 4000, other, null).busy).toBeNull();
  });

  it('adds quick looks up to a window that means something', () => {
    let state = observe(UNSEEN, 0, cpu(0, 0), null);
    for (let atMs = 50; atMs <= 400; atMs += 50) state = observe(state, atMs, cpu(atMs, atMs / 10), null);
    expect(state.busy).toBe(true);
  });

  it('a model that pauses for a moment is not idle yet', () => {
    expect(busyOf(play([0, 500, 0, 500, 0, 0]))).toEqual([null, true, true, true, true, true]);
  });
});

describe('busy and idle by counters', () => {
  it('requests in work or waiting make it busy', () => {
    expect(observe(UNSEEN, 0, null, { processing: 1, deferred: 0 }).busy).toBe(true);
    expect(observe(UNSEEN, 0, null, { processing: 0, deferred: 2 }).busy).toBe(true);
  });

  it('none make it idle at once, unless its processor says otherwise', () => {
    expect(observe(UNSEEN, 0, null, { processing: 0, deferred: 0 }).busy).toBe(false);
    expect(busyOf(play([0, 300], { processing: 0, deferred: 0 }))).toEqual([false, true]);
  });

  it('no answer in time is work when it computes, and unknown when it does not', () => {
    expect(busyOf(play([0, 900], 'late')).at(-1)).toBe(true);
    expect(busyOf(play([0, 0, 0, 0, 0, 0], 'late')).at(-1)).toBeNull();
  });
});

describe('when it was last busy', () => {
  it('counts from the end of its last request, not from its start', () => {
    let state = observe(UNSEEN, 0, null, { processing: 1, deferred: 0 });
    state = observe(state, 60_000, null, { processing: 1, deferred: 0 });
    state = observe(state, 61_000, null, { processing: 0, deferred: 0 });
    expect(state).toMatchObject({ busy: false, lastBusyAtMs: 61_000 });
    expect(observe(state, 90_000, null, { processing: 0, deferred: 0 }).lastBusyAtMs).toBe(61_000);
  });

  it('by CPU time is not before the first quiet look', () => {
    const states = play([0, 500, 0, 0, 0, 0]);
    expect(states.at(-1)).toMatchObject({ busy: false, lastBusyAtMs: 2000 });
  });

  it('is kept through sleep and reload, and null when never seen', () => {
    const busy = observe(UNSEEN, 5, null, { processing: 1, deferred: 0 });
    expect(atRest(busy)).toMatchObject({ busy: false, lastBusyAtMs: 5 });
    expect(inTransit(busy)).toMatchObject({ busy: null, lastBusyAtMs: 5 });
    expect(play([0, 0, 0, 0]).at(-1)?.lastBusyAtMs).toBeNull();
  });
});

describe('counters', () => {
  it('are read with and without labels, and unknown when they are missing', () => {
    const text = '# TYPE x gauge\nllamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n';
    expect(parseMetrics(text)).toEqual({ processing: 2, deferred: 1 });
    expect(parseMetrics('llamacpp:requests_processing{model="a b"} 3\n')).toEqual({
      processing: 3,
      deferred: 0,
    });
    expect(parseMetrics('<html>')).toBeNull();
    expect(parseMetrics('llamacpp:requests_processing nan\n')).toBeNull();
  });
});
