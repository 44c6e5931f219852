import { describe, expect, it } from 'vitest';
import { decide } from '../../../electron/core/guards/decide.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import type { GuardModel } from '../../../electron/core/guards/world.ts';
import {
  batch,
  breached,
  CARD,
  decisionsOf,
  device,
  GB,
  LONG_AGO,
  loading,
  model,
  NOW,
  small,
  told,
  world,
} from './worlds.ts';

const busy = { busy: true, lastUsedAtMs: NOW } as const;
const tight = device({ freeBytes: 6.9 * GB });
const newcomer = loading('qwen-27b', 12.5 * GB);

describe('rule 7: the loading race', () => {
  it('cuts the busy one that stands in the way, at once and with the figures', () => {
    const [decision] = decisionsOf(world(tight, [newcomer, model('vision-8b', busy)]));
    expect(decision).toMatchObject({
      type: 'unload',
      modelId: 'router/vision-8b',
      cause: 'race',
      requireIdle: false,
      forModelId: 'router/qwen-27b',
      guarded: 'on',
      numbers: { neededBytes: 12.5 * GB, freeBytes: 6.9 * GB, modelBytes: 8 * GB, floorBytes: 4 * GB },
    });
    expect(decision?.reason).toBe(
      'Unloading vision-8b: qwen-27b is loading and needs 12.5 GB, 6.9 GB is free (it is cut off mid-request).',
    );
  });

  it('says it of a quiet one without more words', () => {
    const [decision] = decisionsOf(world(tight, [newcomer, model('vision-8b')]));
    expect(decision?.reason).toBe(
      'Unloading vision-8b: qwen-27b is loading and needs 12.5 GB, 6.9 GB is free.',
    );
  });

  it('leaves all alone where the newcomer fits', () => {
    expect(told(world(device({ freeBytes: 17 * GB }), [newcomer, model('vision-8b', busy)]))).toEqual([]);
  });

  it('counts what the newcomer has already taken once', () => {
    const seen = loading('qwen-27b', 12.5 * GB, { seenBytes: 11 * GB });
    expect(told(world(tight, [seen, model('vision-8b', busy)]))).toEqual([]);
  });

  it('reckons a load that can not be measured by what free memory has fallen by since it began', () => {
    const unseen = loading('qwen-27b', 12.5 * GB, { seenBytes: null, statusSinceMs: NOW - 2_000 });
    const points = [
      { atMs: NOW - 2_500, freeBytes: 17 * GB },
      { atMs: NOW - 1_000, freeBytes: 10 * GB },
    ];
    const memory = { ...emptyMemory(), recentFree: { [CARD]: points } };
    expect(told(world(tight, [unseen, model('vision-8b', busy)]), memory)).toEqual([]);
    expect(told(world(tight, [unseen, model('vision-8b', busy)]))).toEqual(['unload vision-8b race']);
  });

  it('does not think a newcomer still hungry because a loser’s bytes came back while it loaded', () => {
    const unseen = loading('qwen-27b', 12.5 * GB, { seenBytes: null });
    const first = decide(
      world(tight, [unseen, model('vision-8b', { ...busy, lastUsedAtMs: NOW - 1 }), model('other', busy)]),
      emptyMemory(),
    );
    expect(first.decisions.map((one) => one.modelId)).toEqual(['router/vision-8b']);
    // Half a second on vision-8b's 8.0 GB are back, and 5 of the newcomer's 12.5 have been taken.
    const gone = model('vision-8b', { status: 'unloaded', bytes: null, busy: false });
    const later = world(
      device({ freeBytes: 9.9 * GB, sampledAtMs: NOW + 500 }),
      [unseen, gone, model('other', busy)],
      { nowMs: NOW + 500 },
    );
    expect(decide(later, first.memory).decisions).toEqual([]);
  });

  const order: readonly [string, readonly GuardModel[], readonly string[]][] = [
    ['idle before busy', [model('a', busy), model('b')], ['b']],
    [
      'batch before unknown before interactive',
      [
        model('a', { ...busy, turnClass: 'interactive' }),
        model('b', { ...busy, turnClass: 'batch' }),
        model('c', busy),
      ],
      ['b'],
    ],
    [
      'least recently used first',
      [model('a', { lastUsedAtMs: NOW - 300_000 }), model('b', { bytes: 10 * GB })],
      ['b'],
    ],
    ['not big before busy big', [model('a', busy), model('mid', { big: false })], ['mid']],
    ['batch-only before idle big', [model('a'), batch('b', { bytes: 10 * GB })], ['b']],
    ['a resident only after all others', [small('nine', { bytes: 10.6 * GB }), model('a', busy)], ['a']],
    ['a resident where nothing else is there', [small('nine', { bytes: 10.6 * GB })], ['nine']],
    ['a busy resident where nothing else is there', [small('nine', { ...busy, bytes: 10.6 * GB })], ['nine']],
    ['unknown busy counts as busy', [model('a', { busy: null }), model('b', { lastUsedAtMs: NOW })], ['b']],
    [
      'none that the others make needless',
      [
        small('bge', { bytes: 1.2 * GB }),
        model('mid', { ...busy, big: false, bytes: 1 * GB }),
        model('a', { ...busy, bytes: 8 * GB, turnClass: 'batch' }),
      ],
      ['a'],
    ],
    [
      'several where one does not do',
      [model('a', { bytes: 4 * GB }), model('b', { bytes: 4 * GB })],
      ['a', 'b'],
    ],
  ];
  for (const [what, models, losers] of order)
    it(`chooses by smallest harm: ${what}`, () => {
      const interactive = loading('new', 12.5 * GB, { turnClass: 'interactive' });
      expect(told(world(tight, [interactive, ...models]))).toEqual(
        losers.map((name) => `unload ${name} race`),
      );
    });

  it('lets a sole big newcomer down to the hard floor before it cuts anything', () => {
    const fits = device({ freeBytes: 14.5 * GB });
    expect(told(world(fits, [newcomer, small('nine', busy), small('bge')]))).toEqual([]);
    const misses = device({ freeBytes: 14.4 * GB });
    expect(told(world(misses, [newcomer, small('bge')]))).toEqual(['unload bge race']);
  });

  it('keeps the floor beside another big model when that one is quiet, and cuts a busy one only for the hard floor', () => {
    const between = device({ freeBytes: 15 * GB });
    expect(told(world(between, [newcomer, model('old', { lastUsedAtMs: NOW - 5_000 })]))).toEqual([
      'unload old race',
    ]);
    expect(decisionsOf(world(between, [newcomer, model('old')]))[0]).toMatchObject({ requireIdle: true });
    expect(told(world(between, [newcomer, model('old', busy)]))).toEqual([]);
  });

  it('cuts nobody busy when that would not save the load', () => {
    const hopeless = device({ freeBytes: 1 * GB });
    expect(told(world(hopeless, [newcomer, model('a', { ...busy, bytes: 3 * GB })]))).toEqual([]);
    expect(told(world(hopeless, [newcomer, model('a', { ...busy, bytes: 11.5 * GB })]))).toEqual([
      'unload a race',
    ]);
  });

  it('never touches a pinned one or another that is loading', () => {
    const others = [model('a', { ...busy, pinned: true }), loading('b', 9 * GB, { statusSinceMs: NOW - 10 })];
    expect(told(world(tight, [newcomer, ...others]))).toEqual([]);
  });

  it('counts what is on its way out, and does not pile up', () => {
    const leaving = model('a', { ...busy, unloadRequestedAtMs: NOW - 300 });
    expect(told(world(tight, [newcomer, leaving, model('b', busy)]))).toEqual([]);
  });

  it('counts older loads and booked jobs before the newcomer', () => {
    const older = loading('older', 6 * GB, { statusSinceMs: NOW - 900 });
    const roomy = device({ freeBytes: 17 * GB });
    expect(told(world(roomy, [older, newcomer, model('a', busy)]))).toEqual(['unload a race']);
    const booked = device({ freeBytes: 17 * GB, outstandingBytes: 12.5 * GB + 6 * GB });
    expect(told(world(booked, [newcomer, model('a', busy)]))).toEqual(['unload a race']);
  });

  it('stays on its own device', () => {
    const elsewhere = model('a', { ...busy, deviceId: 'pci:other' });
    const two = [tight, device({ id: 'pci:other', freeBytes: 1 * GB })];
    expect(told(world(two, [newcomer, elsewhere]))).toEqual([]);
  });
});

describe('rule 7: who gives way', () => {
  const interactive = model('chat', { ...busy, turnClass: 'interactive' });
  const cases = [
    ['class', null, 'interactive', 'new'],
    ['class', 'batch', 'interactive', 'new'],
    ['class', 'interactive', 'interactive', 'chat'],
    ['class', null, null, 'chat'],
    ['class', 'batch', 'batch', 'chat'],
    ['resident', null, 'interactive', 'chat'],
    ['newcomer', 'interactive', 'batch', 'new'],
  ] as const;
  for (const [race, newClass, oldClass, loser] of cases)
    it(`race ${race}: ${newClass ?? 'unknown'} newcomer against ${oldClass ?? 'unknown'}: ${loser} leaves`, () => {
      const models = [
        loading('new', 12.5 * GB, { turnClass: newClass }),
        model('chat', { ...busy, turnClass: oldClass }),
      ];
      expect(told(world(tight, models, { policy: { race } }))).toEqual([`unload ${loser} race`]);
    });

  it('tells the newcomer why', () => {
    const [decision] = decisionsOf(world(tight, [newcomer, interactive]));
    expect(decision).toMatchObject({ forModelId: 'router/chat', requireIdle: false });
    expect(decision?.reason).toBe(
      'Unloading qwen-27b: it needs 12.5 GB, 6.9 GB is free, and chat serves an interactive turn and stays.',
    );
  });

  it('takes another way out first: a quiet or lesser one, when that does', () => {
    expect(told(world(tight, [newcomer, interactive, model('idle')]))).toEqual(['unload idle race']);
    expect(told(world(tight, [newcomer, interactive, model('other', busy)]))).toEqual(['unload other race']);
  });

  it('never unloads a pinned newcomer', () => {
    const pinned = loading('qwen-27b', 12.5 * GB, { pinned: true });
    expect(told(world(tight, [pinned, interactive]))).toEqual([]);
  });
});

describe('rule 7: a footprint nobody knows', () => {
  const unknown = loading('new', null, { seenBytes: null });
  it('is a race only once free memory is short or about to be', () => {
    expect(told(world(tight, [unknown, model('a', busy), model('b')]))).toEqual([]);
    expect(told(world(device({ freeBytes: 3 * GB }), [unknown, model('b')]))).toEqual(['unload b race']);
  });

  it('lets one quiet model go at a time while free memory falls towards the floor', () => {
    const memory = {
      ...emptyMemory(),
      recentFree: { [CARD]: [{ atMs: NOW - 1_000, freeBytes: 9 * GB }] },
    };
    const models = [unknown, model('a'), model('b'), model('c', busy)];
    expect(told(world(tight, models), memory)).toEqual(['unload a race']);
  });

  it('cuts a busy one only under the hard floor', () => {
    expect(told(world(device({ freeBytes: 3 * GB }), [unknown, model('a', busy)]))).toEqual([]);
    expect(told(world(device({ freeBytes: 1 * GB }), [unknown, model('a', busy)]))).toEqual([
      'unload a race',
    ]);
  });

  it('with maxBig 1 always displaces the other big models, busy or not', () => {
    const policy = { maxBig: 1 };
    expect(told(world(device({ freeBytes: 20 * GB }), [unknown, model('a', busy)], { policy }))).toEqual([
      'unload a race',
    ]);
  });
});

describe('rules 7 and 8 together: a count of big models in a race', () => {
  const policy = { maxBig: 1 };
  it('displaces a quiet one though there is room, and waits for a busy one', () => {
    const roomy = device({ freeBytes: 25 * GB });
    expect(
      decisionsOf(world(roomy, [newcomer, model('a', { lastUsedAtMs: NOW })], { policy })),
    ).toMatchObject([{ modelId: 'router/a', cause: 'race', requireIdle: true }]);
    expect(told(world(roomy, [newcomer, model('a', busy)], { policy }))).toEqual([]);
  });

  it('cuts the busy big one before any other busy one when the bytes are needed', () => {
    const mid = model('mid', { ...busy, big: false, bytes: 9 * GB, turnClass: 'batch' });
    expect(told(world(tight, [newcomer, model('a', busy), mid], { policy }))).toEqual(['unload a race']);
  });
});

describe('rule 7: the kill after the grace', () => {
  const asked = (more: Partial<GuardModel> = {}) =>
    model('vision-8b', { ...busy, unloadRequestedAtMs: NOW - 1_000, ...more });
  const since = { statusSinceMs: NOW - 1_200 };
  const loadingSince = loading('qwen-27b', 12.5 * GB, since);

  it('kills a proven loser that is still there', () => {
    const [decision] = decisionsOf(world(tight, [loadingSince, asked()]));
    expect(decision).toMatchObject({ type: 'kill', modelId: 'router/vision-8b', cause: 'race' });
    expect(decision?.reason).toBe(
      'Killing vision-8b: it was asked to make room for qwen-27b 1.0 s ago and still holds 8.0 GB.',
    );
  });

  it('kills it once', () => {
    const first = decide(world(tight, [loadingSince, asked()]), emptyMemory());
    const later = world(device({ freeBytes: 6.9 * GB, sampledAtMs: NOW + 500 }), [loadingSince, asked()], {
      nowMs: NOW + 500,
    });
    expect(decide(later, first.memory).decisions).toEqual([]);
  });

  const not: readonly [string, Partial<GuardModel>, GuardModel, number][] = [
    ['before the grace is over', { unloadRequestedAtMs: NOW - 999 }, loadingSince, 6.9],
    ['a process that is not ours to signal', { signalable: false }, loadingSince, 6.9],
    ['a process nobody has looked at', { signalable: null }, loadingSince, 6.9],
    ['a pinned one', { pinned: true }, loadingSince, 6.9],
    ['when the newcomer no longer misses its bytes', {}, loadingSince, 14.5],
    ['when the newcomer is loaded', {}, model('qwen-27b', { busy: true }), 6.9],
    ['when the newcomer has only just begun', {}, loading('qwen-27b', 12.5 * GB), 6.9],
    ['one the race policy keeps', { turnClass: 'interactive' }, loadingSince, 6.9],
  ];
  for (const [what, more, other, freeGb] of not)
    it(`does not kill ${what}`, () => {
      const decisions = decisionsOf(world(device({ freeBytes: freeGb * GB }), [other, asked(more)]));
      expect(decisions.filter((decision) => decision.type === 'kill')).toEqual([]);
    });

  it('names the stop-timeout where a signal is not permitted', () => {
    const [decision] = decisionsOf(
      world(tight, [newcomer, model('vision-8b', { ...busy, signalable: false })]),
    );
    expect(decision?.reason).toContain('stop-timeout');
  });

  it('kills a newcomer that lost and goes on loading', () => {
    const chat = model('chat', { ...busy, turnClass: 'interactive' });
    const first = decide(world(tight, [newcomer, chat]), emptyMemory());
    const still = { ...newcomer, unloadRequestedAtMs: NOW };
    const later = world(device({ freeBytes: 5 * GB, sampledAtMs: NOW + 1_000 }), [still, chat], {
      nowMs: NOW + 1_000,
    });
    expect(decide(later, first.memory).decisions).toMatchObject([
      { type: 'kill', modelId: 'router/qwen-27b' },
    ]);
    expect(decide(later, emptyMemory()).decisions).toEqual([]);
    const stopping = { ...newcomer, status: 'stopping' as const, unloadRequestedAtMs: NOW };
    const shown = { ...later, models: [stopping, chat] };
    expect(decide(shown, first.memory).decisions).toMatchObject([
      { type: 'kill', modelId: 'router/qwen-27b' },
    ]);
  });

  it('does not kill a newcomer that lost, once there is room for it, and does where the card is past its end (rule 7)', () => {
    const chat = model('chat', { ...busy, turnClass: 'interactive' });
    const first = decide(world(tight, [newcomer, chat]), emptyMemory());
    const at = (freeGb: number, change: Partial<typeof newcomer>) =>
      decide(
        world(
          device({ freeBytes: freeGb * GB, sampledAtMs: NOW + 1_000 }),
          [{ ...newcomer, unloadRequestedAtMs: NOW, ...change }, chat],
          { nowMs: NOW + 1_000 },
        ),
        first.memory,
      ).decisions;
    // A browser has gone, and it needs no more than there is.
    expect(at(30, {})).toEqual([]);
    expect(at(10, { status: 'loaded', busy: true })).toEqual([]);
    expect(at(0.5, { status: 'loaded', busy: true })).toMatchObject([{ type: 'kill' }]);
  });

  it('does not kill a loser of a race that is over', () => {
    const first = decide(world(tight, [newcomer, model('vision-8b', busy)]), emptyMemory());
    const stopping = model('vision-8b', { ...busy, status: 'stopping', unloadRequestedAtMs: NOW });
    const failed = { ...newcomer, status: 'failed' as const };
    const later = world(device({ freeBytes: 6.9 * GB, sampledAtMs: NOW + 2_000 }), [failed, stopping], {
      nowMs: NOW + 2_000,
    });
    expect(decide(later, first.memory).decisions).toEqual([]);
  });

  it('kills a loser whose newcomer is loaded already and that keeps the card past its end', () => {
    const first = decide(world(tight, [newcomer, model('vision-8b', busy)]), emptyMemory());
    const stopping = model('vision-8b', { ...busy, status: 'stopping', unloadRequestedAtMs: NOW });
    const loaded = model('qwen-27b', { busy: true });
    const at = (nowMs: number, freeBytes: number, evictionUnderWay: boolean | null = null) =>
      decide(
        world(device({ freeBytes, sampledAtMs: nowMs, evictionUnderWay }), [loaded, stopping], { nowMs }),
        first.memory,
      ).decisions;
    expect(at(NOW + 1_000, 0)).toMatchObject([{ type: 'kill', modelId: 'router/vision-8b', cause: 'race' }]);
    expect(at(NOW + 1_000, 3 * GB, true)).toMatchObject([{ type: 'kill', modelId: 'router/vision-8b' }]);
    expect(at(NOW + 999, 0)).toEqual([]);
    expect(at(NOW + 1_000, 3 * GB)).toEqual([]);
  });

  it('counts of a newcomer on its way out only what it has taken', () => {
    const chat = model('chat', { ...busy, turnClass: 'interactive' });
    const first = decide(world(tight, [newcomer, chat]), emptyMemory());
    const stopping = {
      ...newcomer,
      status: 'stopping' as const,
      unloadRequestedAtMs: NOW,
      seenBytes: 0.5 * GB,
    };
    const low = device({ freeBytes: 1.5 * GB, sampledAtMs: NOW + 500 });
    const later = world(low, [stopping, chat, model('idle')], { nowMs: NOW + 500 });
    expect(decide(later, first.memory).decisions).toMatchObject([{ modelId: 'router/idle', cause: 'floor' }]);
  });

  it('escalates an unload for the floor that hangs when a race comes to need it', () => {
    const hanging = model('old', { unloadRequestedAtMs: NOW - 5_000, status: 'stopping' });
    expect(told(world(tight, [loadingSince, hanging]), breached())).toEqual(['kill old race']);
  });
});

it('rule 13: a race needs no wait and no residency', () => {
  const back = model('vision-8b', { ...busy, statusSinceMs: NOW - 1_000 });
  const memory = {
    ...emptyMemory(),
    decided: { 'router/vision-8b': { atMs: LONG_AGO, cause: 'race', type: 'unload' } as const },
  };
  expect(told(world(tight, [newcomer, back]), memory)).toEqual(['unload vision-8b race']);
});
