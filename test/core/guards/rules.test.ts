import { describe, expect, it } from 'vitest';
import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory, noteFreedNothing } from '../../../electron/core/guards/memory.ts';
import { isOvertaken } from '../../../electron/core/guards/one-big.ts';
import type { GuardDevice, GuardModel } from '../../../electron/core/guards/world.ts';
import {
  batch,
  breached,
  CARD,
  decisionsOf,
  device,
  GB,
  loading,
  model,
  NOW,
  small,
  told,
  world,
} from './worlds.ts';

const recent = NOW - 60_000;
const busy = { busy: true, lastUsedAtMs: NOW } as const;
const below = device({ freeBytes: 3 * GB });

describe('rule 6: nothing on a stale or unknown sample, nor across a resume', () => {
  const bad: readonly [string, Partial<GuardDevice>, number | null][] = [
    ['stale', { fresh: false }, null],
    ['unknown free', { freeBytes: null }, null],
    ['never read', { sampledAtMs: null }, null],
    ['read before the resume', { sampledAtMs: NOW - 100 }, NOW - 50],
  ];
  for (const [what, more, resumedAtMs] of bad)
    it(`${what}: no rule acts`, () => {
      const models = [
        loading('new', 20 * GB),
        model('busy', busy),
        model('idle', { ttlMs: 1 }),
        batch('batch'),
        model('asked', { unloadRequestedAtMs: NOW - 5_000 }),
      ];
      const wantedFree = [{ deviceId: CARD, freeBytes: 30 * GB }];
      const policy = { maxBig: 1 };
      const everything = { asleep: true, wantedFree, policy };
      const result = decide(
        world(device({ freeBytes: 0.1 * GB, ...more }), models, { ...everything, resumedAtMs }),
        breached(),
      );
      expect(result.decisions).toEqual([]);
      expect(result.verdicts).toMatchObject([{ health: 'stale', shortBytes: null }]);
    });

  it('acts again on the first reading after the resume', () => {
    const models = [model('idle', { ttlMs: 1 })];
    expect(told(world(device(), models, { resumedAtMs: NOW - 50 }))).toEqual(['unload idle ttl']);
  });

  it('a breach from before the suspend has to last anew', () => {
    const result = decide(world(below, [model('idle')], { resumedAtMs: NOW - 50 }), breached());
    expect(result.decisions).toEqual([]);
    expect(result.memory.breachSinceMs).toEqual({ [CARD]: NOW });
  });
});

describe('rule 8: at most maxBig big models', () => {
  const two = [model('old', { lastUsedAtMs: recent - 1 }), model('new', { lastUsedAtMs: recent })];
  it('unloads all but the most recently used, once quiet', () => {
    const [decision, ...rest] = decisionsOf(world(device(), two, { policy: { maxBig: 1 } }));
    expect(rest).toEqual([]);
    expect(decision).toMatchObject({ modelId: 'router/old', cause: 'max_big', requireIdle: true });
    expect(decision?.reason).toBe('Unloading old: at most 1 big model stays loaded, and new was used later.');
  });

  const cases: readonly [string, readonly GuardModel[], number, readonly string[]][] = [
    ['waits for a busy one', [model('old', busy), model('new', { lastUsedAtMs: recent })], 1, ['new']],
    ['waits where busy is unknown', [model('old', { busy: null }), model('new', busy)], 1, []],
    ['keeps the pinned, which takes a place', [model('old', { pinned: true }), ...two.slice(1)], 1, ['new']],
    ['does not count small ones', [small('nine'), ...two.slice(1)], 1, []],
    [
      'does not count one on its way out',
      [model('old', { unloadRequestedAtMs: NOW - 1 }), ...two.slice(1)],
      1,
      [],
    ],
    ['does not count a sleeping one', [model('old', { status: 'sleeping' }), ...two.slice(1)], 1, []],
    ['holds two where two are allowed', two, 2, []],
    ['lets all leave at 0', two, 0, ['old', 'new']],
  ];
  for (const [what, models, maxBig, leave] of cases)
    it(what, () => {
      expect(told(world(device(), models, { policy: { maxBig } }))).toEqual(
        leave.map((name) => `unload ${name} max_big`),
      );
    });

  it('takes the one loaded first for the one used first where one look saw both used', () => {
    const both = [
      model('a', { lastUsedAtMs: recent, statusSinceMs: recent - 1 }),
      model('b', { lastUsedAtMs: recent, statusSinceMs: recent - 2 }),
    ];
    expect(told(world(device(), both, { policy: { maxBig: 1 } }))).toEqual(['unload b max_big']);
  });

  it('does not go on with one of which it turns out that it was used later than the other', () => {
    // What the other has done becomes known while the first is asked whether it is idle.
    const unknown = world(
      device(),
      [model('old', { busy: null, lastUsedAtMs: recent - 1 }), ...two.slice(1)],
      {
        policy: { maxBig: 1 },
      },
    );
    expect(told(unknown)).toEqual(['unload new max_big']);
    const known = world(device(), two, { policy: { maxBig: 1 } });
    expect(isOvertaken(unknown, emptyMemory(), 'router/new')).toBe(false);
    expect(isOvertaken(known, emptyMemory(), 'router/new')).toBe(true);
    expect(isOvertaken(known, emptyMemory(), 'router/old')).toBe(false);
    expect(isOvertaken(world(device(), two), emptyMemory(), 'router/new')).toBe(false);
  });

  it('fit: nothing leaves while cap and floor hold', () => {
    expect(told(world(device({ bookedBytes: 28 * GB }), two))).toEqual([]);
  });

  it('fit: over the cap the idle big one longest unused leaves, just enough', () => {
    const over = device({ bookedBytes: 30 * GB });
    const models = [model('one'), model('two', { lastUsedAtMs: NOW - 200_000 }), small('nine')];
    expect(told(world(over, models))).toEqual(['unload one max_big']);
    expect(told(world(over, [model('one', { lastUsedAtMs: recent })]))).toEqual([]);
  });
});

describe('rule 9: below the floor', () => {
  const cases: readonly [string, number, readonly GuardModel[], readonly string[]][] = [
    [
      'batch-only first, as soon as it is quiet',
      3,
      [model('mid', { big: false }), batch('b', { lastUsedAtMs: NOW })],
      ['b'],
    ],
    [
      'then the idle big one longest unused',
      3,
      [model('one', { lastUsedAtMs: NOW - 200_000 }), model('two')],
      ['two'],
    ],
    ['then idle ones neither small nor pinned', 3, [model('mid', { big: false }), small('nine')], ['mid']],
    [
      'big before middling',
      3,
      [model('mid', { big: false }), model('big', { lastUsedAtMs: NOW - 200_000 })],
      ['big'],
    ],
    [
      'in that order until it is enough',
      2.1,
      [model('mid', { big: false, bytes: 1 * GB }), batch('b', { bytes: 1 * GB })],
      ['b', 'mid'],
    ],
    [
      'just enough',
      3,
      [model('one', { bytes: 1 * GB }), model('two', { lastUsedAtMs: NOW - 200_000 })],
      ['one'],
    ],
    ['never a busy one', 3, [model('a', busy), batch('b', busy)], []],
    ['never one whose state is unknown', 3, [model('a', { busy: null })], []],
    ['never one within the idle time', 3, [model('a', { lastUsedAtMs: NOW - 179_999 })], []],
    ['one that was never used is idle since it was loaded', 3, [model('a', { lastUsedAtMs: null })], ['a']],
    [
      'never one that its server can not let go: the next one gives its place',
      3,
      [model('old', { lastUsedAtMs: 0, isFixed: true }), model('free')],
      ['free'],
    ],
    ['never a pinned one', 0.1, [model('a', { pinned: true }), batch('b', { pinned: true })], []],
    ['never one that is loading', 3, [loading('a', 1 * GB, { seenBytes: 1 * GB })], []],
    ['residents stay above the hard floor', 2, [small('nine')], []],
  ];
  for (const [what, freeGb, models, leave] of cases)
    it(what, () => {
      const lines = told(world(device({ freeBytes: freeGb * GB }), models), breached());
      expect(lines).toEqual(leave.map((name) => `unload ${name} floor`));
    });

  it('takes idle residents only below the hard floor, only after all others, and only up to it', () => {
    const models = [
      small('nine', { bytes: 2 * GB, lastUsedAtMs: NOW - 200_000 }),
      small('bge', { bytes: 1.2 * GB }),
      small('in use', busy),
      model('mid', { big: false, bytes: 0.5 * GB }),
    ];
    expect(told(world(device({ freeBytes: 0.5 * GB }), models), breached())).toEqual([
      'unload mid floor',
      'unload bge hard_floor',
    ]);
  });

  it('counts what is on its way out and waits where its size is unknown', () => {
    const asked = { unloadRequestedAtMs: NOW - 2_000 };
    expect(told(world(below, [model('a', asked), model('b')]), breached())).toEqual([]);
    expect(told(world(below, [model('a', { ...asked, bytes: null }), model('b')]), breached())).toEqual([]);
    expect(told(world(below, [model('a', { ...asked, bytes: 0.2 * GB }), model('b')]), breached())).toEqual([
      'unload b floor',
    ]);
  });

  it('stops believing an unload that hangs', () => {
    const stuck = model('a', { status: 'stopping', unloadRequestedAtMs: NOW - 31_000 });
    expect(told(world(below, [stuck, model('b')]), breached())).toEqual(['unload b floor']);
  });

  it('says why, in figures', () => {
    const [decision] = decisionsOf(world(below, [model('vision-8b')]), breached());
    expect(decision).toMatchObject({ requireIdle: true, numbers: { freeBytes: 3 * GB, idleMs: 3_600_000 } });
    expect(decision?.reason).toBe(
      'Unloading vision-8b: 3.0 GB is free, under the floor of 4.0 GB, and it has been idle for 60 min.',
    );
  });
});

describe('rule 13: calm', () => {
  it('a breach has to last: first seen, then five seconds on', () => {
    const models = [model('idle')];
    const first = decide(world(below, models), emptyMemory());
    expect(first.decisions).toEqual([]);
    const at = (afterMs: number) =>
      decide(
        world(device({ freeBytes: 3 * GB, sampledAtMs: NOW + afterMs }), models, { nowMs: NOW + afterMs }),
        first.memory,
      );
    expect(at(4_999).decisions).toEqual([]);
    expect(at(5_000).decisions).toHaveLength(1);
  });

  it('a spike that passes starts the wait anew', () => {
    const models = [model('idle')];
    let memory = decide(world(below, models), emptyMemory()).memory;
    const ok = device({ freeBytes: 5 * GB, sampledAtMs: NOW + 3_000 });
    memory = decide(world(ok, models, { nowMs: NOW + 3_000 }), memory).memory;
    const again = device({ freeBytes: 3 * GB, sampledAtMs: NOW + 5_500 });
    expect(decide(world(again, models, { nowMs: NOW + 5_500 }), memory).decisions).toEqual([]);
  });

  it('counts at once below half the floor, and while the driver moves memory out', () => {
    expect(told(world(device({ freeBytes: 2 * GB }), [model('idle')]))).toEqual([]);
    expect(told(world(device({ freeBytes: 2 * GB - 1 }), [model('idle')]))).toEqual(['unload idle floor']);
    const moving = device({ freeBytes: 3.9 * GB, evictionUnderWay: true });
    expect(told(world(moving, [model('idle')]))).toEqual(['unload idle floor']);
  });

  it('does not evict a model again within its minimum residency unless the floor is broken', () => {
    const evicted = { atMs: NOW - 40_000, cause: 'ttl', type: 'unload' } as const;
    const memory = { ...emptyMemory(), decided: { 'router/back': evicted } };
    const back = model('back', { statusSinceMs: NOW - 30_000, ttlMs: 10_000, batchOnly: true });
    const big = model('big', busy);
    expect(told(world(device(), [back, big]), memory)).toEqual([]);
    expect(told(world(device(), [back, big]))).toEqual(['unload back batch_only']);
    expect(told(world(below, [back, big]), breached(memory))).toEqual(['unload back batch_only']);
  });

  it('does not repeat an eviction that freed nothing until free memory is lower or ten minutes have gone', () => {
    const nothing = (atMs: number) => noteFreedNothing(breached(), 'router/idle', atMs, 3 * GB);
    expect(told(world(below, [model('idle')]), nothing(NOW - 1_000))).toEqual([]);
    expect(told(world(device({ freeBytes: 2.8 * GB }), [model('idle')]), nothing(NOW - 1_000))).toEqual([
      'unload idle floor',
    ]);
    expect(told(world(below, [model('idle')]), nothing(NOW - 600_000))).toEqual(['unload idle floor']);
  });

  it('does not decide the same each tick, and tries again when it was refused', () => {
    const first = decide(world(below, [model('idle')]), breached());
    const at = (afterMs: number) =>
      decide(
        world(device({ freeBytes: 3 * GB, sampledAtMs: NOW + afterMs }), [model('idle')], {
          nowMs: NOW + afterMs,
        }),
        first.memory,
      ).decisions.length;
    expect([at(500), at(9_999), at(10_000)]).toEqual([0, 0, 1]);
  });
});

describe('batch-only instances step aside', () => {
  it('while a big model is loading or loaded, once quiet', () => {
    expect(told(world(device(), [batch('b'), loading('big', 2 * GB)]))).toEqual(['unload b batch_only']);
    expect(told(world(device(), [batch('b'), model('big', busy)]))).toEqual(['unload b batch_only']);
    expect(told(world(device(), [batch('b', busy), model('big', busy)]))).toEqual([]);
  });

  it('not when pinned, alone, beside a sleeping big one, or on another device', () => {
    const elsewhere = model('big', { ...busy, deviceId: 'pci:other' });
    for (const models of [
      [batch('b', { pinned: true }), model('big', busy)],
      [batch('b'), small('nine', busy)],
      [batch('b'), model('big', { status: 'sleeping' })],
      [batch('b'), elsewhere],
      [batch('b', { big: true })],
    ])
      expect(told(world(device(), models))).toEqual([]);
  });
});

describe('ttl, sleep, make-room, drain', () => {
  it('ttl: leaves after that long idle, room or no room, busy or pinned never', () => {
    const ttlMs = 60_000;
    const cases: readonly [Partial<GuardModel>, number][] = [
      [{ lastUsedAtMs: NOW - 60_000 }, 1],
      [{ lastUsedAtMs: NOW - 59_999 }, 0],
      [{ busy: true }, 0],
      [{ busy: null }, 0],
      [{ pinned: true }, 0],
      [{ small: true, big: false }, 1],
    ];
    for (const [more, count] of cases)
      expect(decisionsOf(world(device(), [model('a', { ttlMs, ...more })]))).toHaveLength(count);
  });

  it('sleep: big models leave at once when quiet, busy ones after their request, others stay', () => {
    const models = [
      model('quiet', { lastUsedAtMs: NOW }),
      model('busy', busy),
      loading('coming', 1 * GB),
      small('nine'),
      model('pinned', { pinned: true }),
    ];
    expect(told(world(device(), models, { asleep: true }))).toEqual(['unload quiet sleep']);
  });

  it('make-room: what is quiet leaves in the order of rule 9, residents last, just enough', () => {
    const models = [
      small('nine', { bytes: 9 * GB }),
      model('new', { lastUsedAtMs: NOW }),
      model('busy', busy),
      model('old'),
    ];
    const wanted = (freeBytes: number) =>
      told(world(device(), models, { wantedFree: [{ deviceId: CARD, freeBytes }] }));
    expect(wanted(9 * GB)).toEqual([]);
    expect(wanted(18 * GB)).toEqual(['unload old make_room']);
    expect(wanted(20 * GB)).toEqual(['unload old make_room', 'unload new make_room']);
    expect(wanted(Number.MAX_SAFE_INTEGER)).toHaveLength(3);
  });

  it('drain: everything leaves, a busy one after its request, also on a stale device', () => {
    const models = [
      small('nine', { pinned: true }),
      model('a'),
      model('busy', busy),
      model('frozen', { busy: null }),
      model('asleep', { status: 'sleeping' }),
    ];
    const stale = device({ fresh: false });
    expect(told(world(stale, models, { drain: { sparePinned: true } }))).toEqual([
      'unload a drain',
      'unload frozen drain',
      'unload asleep drain',
    ]);
    expect(told(world(stale, models, { drain: { sparePinned: false } }))).toContain('unload nine drain');
  });

  it('drain: a stuck server is killed only when proven, not busy, and past its own stop-timeout', () => {
    const stuck = model('a', { busy: null, status: 'stopping', unloadRequestedAtMs: NOW - 11_000 });
    const drained = (more: Partial<GuardModel>) =>
      told(world(device({ fresh: false }), [{ ...stuck, ...more }], { drain: { sparePinned: false } }));
    expect(drained({})).toEqual(['kill a drain']);
    expect(drained({ busy: true })).toEqual([]);
    // Without a person's word nothing is ended, however long it takes.
    const asking = { drain: { sparePinned: false, mayKill: false } };
    expect(told(world(device({ fresh: false }), [stuck], asking))).toEqual([]);
    // A server that waits less by its own preset is waited for less.
    expect(drained({ unloadRequestedAtMs: NOW - 4_000, stopTimeoutMs: 2_000 })).toEqual(['kill a drain']);
    expect(drained({ signalable: null })).toEqual([]);
    expect(drained({ unloadRequestedAtMs: NOW - 10_999 })).toEqual([]);
  });
});

describe('nobody’s model is touched by surprise: observe', () => {
  const watched = { guarded: 'observe' } as const;
  it('decides the same, marked, and says it once', () => {
    const models = [model('idle', watched)];
    const first = decide(world(below, models), breached());
    expect(first.decisions).toMatchObject([{ modelId: 'router/idle', cause: 'floor', guarded: 'observe' }]);
    let { memory } = first;
    let said = 0;
    for (let after = 500; after <= 600_000; after += 500) {
      const step = decide(
        world(device({ freeBytes: 3 * GB, sampledAtMs: NOW + after }), models, { nowMs: NOW + after }),
        memory,
      );
      memory = step.memory;
      said += step.decisions.length;
    }
    expect(said).toBe(1);
  });

  it('never counts an observed model’s bytes where something real has to be freed', () => {
    const models = [model('watched', watched), model('guarded', { lastUsedAtMs: NOW - 200_000 })];
    expect(decisionsOf(world(below, models), breached())).toMatchObject([
      { modelId: 'router/guarded', guarded: 'on' },
      { modelId: 'router/watched', guarded: 'observe' },
    ]);
  });

  it('a guarded model makes room for an observed newcomer', () => {
    const models = [loading('new', 12 * GB, watched), model('a', busy)];
    expect(told(world(device({ freeBytes: 6 * GB }), models))).toEqual(['unload a race']);
  });

  it('a person’s own order is done, observed or not', () => {
    const orders = { drain: { sparePinned: true } };
    expect(decisionsOf(world(device(), [model('a', watched)], orders))).toMatchObject([{ guarded: 'on' }]);
  });
});

describe('health of a device', () => {
  const at = (freeGb: number, more: Partial<GuardDevice> = {}, before: number | null = null) => {
    const points = before === null ? [] : [{ atMs: NOW - 2_000, freeBytes: before * GB }];
    const memory = { ...emptyMemory(), recentFree: { [CARD]: points } };
    return decide(world(device({ freeBytes: freeGb * GB, ...more }), []), memory).verdicts[0];
  };
  it('is ok, threatened under the floor, critical under the hard floor or while the driver evicts', () => {
    expect(at(10)).toEqual({ deviceId: CARD, health: 'ok', shortBytes: 0, fallingBytesPerS: null });
    expect(at(3)).toMatchObject({ health: 'threatened', shortBytes: 1 * GB });
    expect(at(1.9)).toMatchObject({ health: 'critical' });
    expect(at(3, { evictionUnderWay: true })).toMatchObject({ health: 'critical' });
    expect(at(3, { evictionUnderWay: null })).toMatchObject({ health: 'threatened' });
  });

  it('is threatened when free memory falls to the floor within 10 s', () => {
    expect(at(6, {}, 6.5)).toMatchObject({ health: 'threatened', fallingBytesPerS: 0.25 * GB });
    expect(at(7, {}, 7.5)).toMatchObject({ health: 'ok' });
    expect(at(4.01, {}, 4.02)).toMatchObject({ health: 'ok', fallingBytesPerS: null });
  });

  it('is not threatened by a fall that has ended, or by a load taking its room', () => {
    const points = (last: number) => [
      { atMs: NOW - 3_000, freeBytes: 9 * GB },
      { atMs: NOW - 1_500, freeBytes: last * GB },
    ];
    const verdictOf = (last: number, models: readonly GuardModel[] = []) =>
      decide(world(device({ freeBytes: 6 * GB }), models), {
        ...emptyMemory(),
        recentFree: { [CARD]: points(last) },
      }).verdicts[0];
    expect(verdictOf(7)).toMatchObject({ health: 'threatened', fallingBytesPerS: GB });
    expect(verdictOf(6)).toMatchObject({ health: 'ok', fallingBytesPerS: null });
    expect(verdictOf(7, [loading('new', 9 * GB)])).toMatchObject({ health: 'ok', fallingBytesPerS: null });
    expect(verdictOf(7, [model('new', { statusSinceMs: NOW - 1_000 })])).toMatchObject({ health: 'ok' });
    expect(verdictOf(7, [model('old')])).toMatchObject({ health: 'threatened' });
  });
});
