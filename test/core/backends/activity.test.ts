import { describe, expect, it } from 'vitest';
import {
  type Activity,
  afterAsking,
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

/** Looks once a second, with the CPU milliseconds used in each second, nearly all by its first thread. */
function play(
  usedMs: readonly (number | null)[],
  metrics: MetricsEvidence = null,
  from = UNSEEN,
): Activity[] {
  let total = 0;
  let state = from;
  return usedMs.map((used, second) => {
    total += used ?? 0;
    const reading = cpu(second * 1000, Math.floor(total / 10) * 10, { firstThreadMs: total });
    state = observe(state, second * 1000, used === null ? null : reading, metrics);
    return state;
  });
}

/** The same where the kernel tells ticks of 10 ms only. */
function playTicks(usedMs: readonly number[], metrics: MetricsEvidence = null): Activity[] {
  let total = 0;
  let state = UNSEEN;
  return usedMs.map((used, second) => {
    total += used;
    state = observe(state, second * 1000, cpu(second * 1000, Math.floor(total / 10) * 10), metrics);
    return state;
  });
}

const seconds = (count: number, used: (second: number) => number): number[] =>
  Array.from({ length: count }, (_, second) => used(second));
/** What a llama-server of build 11669 runs in a second while it waits, and for the shortest chat there is. */
const WAITING_MS = 0.05;
const SHORT_CHAT_MS = 0.7;

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

describe('short requests, over before anybody looks', () => {
  it('are use by what its first thread ran, though no tick shows it; and waiting is not', () => {
    const chats = play(seconds(60, (second) => (second % 2 === 0 ? SHORT_CHAT_MS : WAITING_MS)));
    expect(chats.slice(1).every((state) => state.busy !== false)).toBe(true);
    expect(chats.at(-1)?.lastBusyAtMs).toBe(58_000);
    const waiting = play(seconds(600, () => WAITING_MS));
    expect(waiting.at(-1)).toMatchObject({ busy: false, lastBusyAtMs: null });
    expect(waiting.slice(3).every((state) => state.busy === false)).toBe(true);
  });

  it('are idle again a few seconds after the last one', () => {
    const states = play([0, ...seconds(10, () => SHORT_CHAT_MS), ...seconds(4, () => WAITING_MS)]);
    expect(states.at(-1)).toMatchObject({ busy: false, lastBusyAtMs: 10_000 });
  });

  it('between waiting and use are unknown, never idle', () => {
    const states = play(seconds(20, () => 0.3));
    expect(states.every((state) => state.busy === null)).toBe(true);
    expect(states.at(-1)?.lastBusyAtMs).toBeNull();
  });

  it('add up where there are ticks only: never idle, and waiting becomes idle in the end', () => {
    const chats = playTicks(seconds(300, () => 1.4));
    expect(chats.some((state) => state.busy === false)).toBe(false);
    expect(chats.at(-1)?.lastBusyAtMs ?? 0).toBeGreaterThan(280_000);
    const waiting = playTicks(seconds(900, () => WAITING_MS));
    expect(waiting.slice(16).every((state) => state.busy === false)).toBe(true);
    expect(waiting.at(-1)?.lastBusyAtMs).toBeNull();
  });

  it('are use by ticks also where the gauges say that nothing is at work now', () => {
    const states = playTicks(
      seconds(200, () => 20),
      { processing: 0, deferred: 0 },
    );
    expect(states.at(-1)?.lastBusyAtMs).toBe(199_000);
  });

  it('are use by any counter that moves; and reading them, however costly, is not', () => {
    const read = (state: Activity, atMs: number, counters: string, ranMs: number): Activity =>
      observe(state, atMs, cpu(atMs, 0, { firstThreadMs: ranMs }), { processing: 0, deferred: 0, counters });
    let state = read(UNSEEN, 0, '7 1 0', 0);
    expect(state.lastBusyAtMs).toBeNull();
    state = read(state, 1_000, '7 1 0', 5);
    expect(state).toMatchObject({ busy: false, lastBusyAtMs: null });
    state = read(state, 2_000, '7 2 0', 5.1);
    expect(state).toMatchObject({ busy: false, lastBusyAtMs: 2_000 });
    state = observe(state, 3_000, null, 'late');
    state = read(state, 4_000, '7 3 0', 5.2);
    expect(state.lastBusyAtMs).toBe(4_000);
  });

  it('of a load that was seen count from nothing, and of one that was there before from the first look', () => {
    const counters = '7 1 0';
    const gauges = { processing: 0, deferred: 0 };
    expect(observe(inTransit(UNSEEN), 9, null, { ...gauges, counters }).lastBusyAtMs).toBe(9);
    expect(observe(inTransit(UNSEEN), 9, null, { ...gauges, counters: '0 0 0' }).lastBusyAtMs).toBeNull();
    expect(observe(UNSEEN, 9, null, { ...gauges, counters }).lastBusyAtMs).toBeNull();
  });
});

describe('asked just before an eviction', () => {
  const gauges = { processing: 0, deferred: 0 };

  it('a counter that moved since the last look is use, once', () => {
    const before = observe(UNSEEN, 0, null, { ...gauges, counters: '7 1' });
    const first = afterAsking(before, 500, { counters: '8 2', tasks: null });
    expect(first).toMatchObject({ isUsed: true, activity: { lastBusyAtMs: 500 } });
    expect(afterAsking(first.activity, 900, { counters: '8 2', tasks: null }).isUsed).toBe(false);
    expect(observe(first.activity, 1_000, null, { ...gauges, counters: '8 2' }).lastBusyAtMs).toBe(500);
  });

  it('another task in a slot is use since it was last asked, unless a look has seen that use', () => {
    const first = afterAsking(UNSEEN, 1_000, { counters: null, tasks: '3' });
    expect(first.isUsed).toBe(false);
    const again = afterAsking(first.activity, 60_000, { counters: null, tasks: '4' });
    expect(again).toMatchObject({ isUsed: true, activity: { lastBusyAtMs: 60_000 } });
    const seen = { ...first.activity, lastBusyAtMs: 30_000 };
    expect(afterAsking(seen, 60_000, { counters: null, tasks: '4' })).toMatchObject({
      isUsed: false,
      activity: { lastBusyAtMs: 30_000 },
    });
    expect(afterAsking(inTransit(again.activity), 90_000, { counters: null, tasks: '0' }).isUsed).toBe(false);
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
    expect(parseMetrics(text)).toEqual({ processing: 2, deferred: 1, counters: null });
    expect(parseMetrics('llamacpp:requests_processing{model="a b"} 3\n')).toEqual({
      processing: 3,
      deferred: 0,
      counters: null,
    });
    const more =
      'llamacpp:n_decode_total 4\nllamacpp:prompt_tokens_total{model="a"} 17\nllamacpp:n_tokens_max 9\n';
    expect(parseMetrics(`${text}${more}`)?.counters).toBe('4 17');
    expect(parseMetrics('<html>')).toBeNull();
    expect(parseMetrics('llamacpp:requests_processing nan\n')).toBeNull();
  });
});
