import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_APP_SETTINGS, NIGHT } from '../../shared/app-settings.ts';
import { EVENT_KINDS, type LandlordEvent } from '../../shared/events.ts';
import { isNeeded, topicOf } from '../../shared/notice-words.ts';
import { NO_NOTICES, type Notice, type NoticeInput, noticeStep } from '../../shared/notices.ts';

const NOON = Date.UTC(2026, 2, 4, 12);
const GB = 1_000_000_000;
let nextId = 1;

function event(change: Partial<LandlordEvent>): LandlordEvent {
  nextId += 1;
  const { model = 'router/27B' } = change;
  return {
    id: nextId,
    at: '2026-03-04T12:00:00.000Z',
    kind: 'evicted',
    reason: `Unloaded ${model.split('/')[1]}: it was idle.`,
    model,
    backend: 'router',
    numbers: { freedBytes: 2 * GB },
    ...change,
  };
}

interface Shown extends Notice {
  readonly atS: number;
}

/** Plays events at their seconds, asks again whenever it is due, and gives what was shown when. */
function play(
  happenings: readonly (readonly [number, LandlordEvent])[],
  change: Partial<NoticeInput> = {},
  until = 300,
): readonly Shown[] {
  let memory = NO_NOTICES;
  let dueAtMs: number | null = null;
  const shown: Shown[] = [];
  for (let atMs = 0; atMs <= until * 1000; atMs += 100) {
    const events = happenings.filter(([atS]) => atS * 1000 === atMs).map(([, one]) => one);
    if (events.length === 0 && (dueAtMs === null || NOON + atMs < dueAtMs)) continue;
    const step = noticeStep(memory, {
      settings: DEFAULT_APP_SETTINGS,
      windowInFront: false,
      ...change,
      events,
      nowMs: NOON + atMs,
    });
    memory = step.memory;
    dueAtMs = step.dueAtMs;
    shown.push(...step.show.map((notice) => ({ ...notice, atS: atMs / 1000 })));
  }
  return shown;
}

describe('notices: every eviction is told', () => {
  it('in its own words, shortly after', () => {
    const one = event({ reason: 'Unloaded 27B: it was idle. 2.0 GB came back.' });
    expect(play([[0, one]])).toEqual([
      {
        atS: 2,
        title: '27B was unloaded',
        body: 'Unloaded 27B: it was idle. 2.0 GB came back.',
        urgency: 'normal',
        eventId: one.id,
      },
    ]);
  });

  it('a run of them as one, with what came back in all', () => {
    const run = ['a', 'b', 'c'].map((name) => event({ model: `router/${name}` }));
    const [notice, ...more] = play(run.map((one, at) => [at * 0.5, one] as const));
    expect(more).toEqual([]);
    expect(notice).toMatchObject({ title: '3 models were unloaded', eventId: run[2]?.id });
    expect(notice?.body).toContain('a, b, c. 6 GB came back.');
  });

  it('an agent’s context as what it is: its model stays', () => {
    const context = (session: string): LandlordEvent =>
      event({
        model: 'embedded/tiny',
        backend: 'embedded',
        session,
        reason: `The context of ${session} left.`,
      });
    expect(play([[0, context('smol')]])[0]?.title).toBe('The context of smol was moved out');
    const both = play([
      [0, context('smol')],
      [0.5, context('qwen')],
      [1, event({})],
    ]);
    expect(both.map((notice) => notice.title)).toEqual(['1 model and 2 contexts were unloaded']);
  });

  it('the end of the embedded engine by its name', () => {
    const ended = event({ kind: 'model_crashed', backend: 'embedded', reason: 'It ended.' });
    const { model: _none, ...nameless } = ended;
    expect(play([[0, nameless]])[0]?.title).toBe('The embedded engine ended by itself');
  });

  it('without a sum that is not known', () => {
    const [notice] = play([
      [0, event({ model: 'r/a' })],
      [0, event({ model: 'r/b', numbers: { freedBytes: null } })],
    ]);
    expect(notice?.body).not.toContain('in all');
    expect(notice?.body).not.toContain('GB came back');
  });

  it('no more than once in half a minute; what comes between is in the next', () => {
    const shown = play([
      [0, event({ model: 'r/a' })],
      [5, event({ model: 'r/b' })],
      [20, event({ model: 'r/c' })],
    ]);
    expect(shown.map((notice) => [notice.atS, notice.title])).toEqual([
      [2, 'a was unloaded'],
      [32, '2 models were unloaded'],
    ]);
  });

  it('at once all the same where it cut a turn', () => {
    const cut = event({ model: 'r/b', reason: 'Unloaded b: c is loading (it was cut off mid-request).' });
    const shown = play([
      [0, event({ model: 'r/a' })],
      [5, cut],
    ]);
    expect(shown.map((notice) => [notice.atS, notice.urgency])).toEqual([
      [2, 'normal'],
      [7, 'critical'],
    ]);
  });
});

describe('notices: not too many', () => {
  it('shows four in a minute at most, whatever they are about', () => {
    const kinds = [
      'config_rejected',
      'driver_trouble',
      'device_lost',
      'storage_failed',
      'orphan_found',
      'lane_stuck',
    ] as const;
    const shown = play(kinds.map((kind, at) => [at, event({ kind })] as const));
    expect(shown.filter((notice) => notice.atS < 60)).toHaveLength(4);
    expect(shown).toHaveLength(6);
  });
});

describe('notices: a server that is away', () => {
  const down = event({ kind: 'backend_down', reason: 'router does not answer.' });
  const up = event({ kind: 'backend_up', reason: 'router answers.' });

  it('is not told when it is back at once', () => {
    expect(
      play([
        [0, down],
        [3, up],
      ]),
    ).toEqual([]);
  });

  it('is told after a while, and its return then too', () => {
    expect(
      play([
        [0, down],
        [60, up],
      ]).map((notice) => [notice.atS, notice.title]),
    ).toEqual([
      [6, 'router does not answer'],
      [66, 'router answers again'],
    ]);
  });

  it('is no news when it comes up for the first time', () => {
    expect(play([[0, up]])).toEqual([]);
  });
});

describe('notices: memory', () => {
  it('tells a threatened floor at once, and a broken one with urgency', () => {
    const numbers = { freeBytes: 3 * GB, floorBytes: 4 * GB, hardFloorBytes: 2 * GB };
    const threatened = event({ kind: 'floor_threatened', deviceId: 'a', numbers });
    const broken = event({ kind: 'floor_threatened', deviceId: 'a', numbers: { ...numbers, freeBytes: GB } });
    const driver = event({ kind: 'driver_eviction', deviceId: 'a' });
    expect(
      play([
        [0, threatened],
        [1, broken],
        [2, driver],
      ]).map((notice) => [notice.atS, notice.title, notice.urgency]),
    ).toEqual([
      [0, 'Memory is getting short', 'normal'],
      [1, 'The desktop is short of memory', 'critical'],
      [2, 'The driver is moving memory out', 'critical'],
    ]);
  });
});

describe('notices: as set', () => {
  const zone = process.env.TZ;
  beforeAll(() => {
    process.env.TZ = 'UTC';
  });
  afterAll(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });
  const needed = { settings: { notifications: 'needed', quietHours: null } } as const;

  it('are silent while the window is in front, in quiet hours, or turned off', () => {
    const all = [event({}), event({ kind: 'driver_eviction' })].map((one, at) => [at, one] as const);
    expect(play(all, { windowInFront: true })).toEqual([]);
    expect(play(all, { settings: { notifications: 'none', quietHours: null } })).toEqual([]);
    const midday = { fromMinute: 11 * 60, toMinute: 13 * 60 };
    expect(play(all, { settings: { notifications: 'all', quietHours: midday } })).toEqual([]);
    expect(play(all, { settings: { notifications: 'all', quietHours: NIGHT } })).toHaveLength(2);
  });

  it('do not come late to who has seen it in the window', () => {
    const first = noticeStep(NO_NOTICES, {
      events: [event({})],
      settings: DEFAULT_APP_SETTINGS,
      windowInFront: false,
      nowMs: NOON,
    });
    expect(first.dueAtMs).toBe(NOON + 2000);
    const looked = noticeStep(first.memory, {
      events: [],
      settings: DEFAULT_APP_SETTINGS,
      windowInFront: true,
      nowMs: NOON + 1000,
    });
    expect(looked).toMatchObject({ show: [], dueAtMs: null });
    expect(looked.memory.waiting).toEqual([]);
  });

  it('tell only what cut a turn or needs a person, where that is set', () => {
    expect(play([[0, event({})]], needed)).toEqual([]);
    expect(play([[0, event({ kind: 'killed' })]], needed)).toHaveLength(1);
    expect(play([[0, event({ kind: 'config_rejected' })]], needed)).toHaveLength(1);
    const numbers = { freeBytes: 3 * GB, hardFloorBytes: 2 * GB };
    expect(play([[0, event({ kind: 'floor_threatened', numbers })]], needed)).toEqual([]);
    expect(
      play([[0, event({ kind: 'floor_threatened', numbers: { ...numbers, freeBytes: GB } })]], needed),
    ).toHaveLength(1);
  });
});

describe('notices: what is told at all', () => {
  it('is what a person has asked to be warned of, and no chatter', () => {
    expect(EVENT_KINDS.filter((kind) => topicOf(event({ kind })) !== null)).toEqual([
      'evicted',
      'killed',
      'would_evict',
      'eviction_failed',
      'freed_nothing',
      'floor_threatened',
      'driver_eviction',
      'load_failed',
      'model_crashed',
      'lane_stuck',
      'backend_down',
      'config_rejected',
      'orphan_found',
      'driver_trouble',
      'device_lost',
      'storage_failed',
      'signal_refused',
    ]);
  });

  it('needs nobody unless it is told', () => {
    for (const kind of EVENT_KINDS) {
      if (isNeeded(event({ kind }))) expect(topicOf(event({ kind })), kind).not.toBeNull();
    }
  });
});
