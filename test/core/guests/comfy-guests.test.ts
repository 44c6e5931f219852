import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../../../electron/core/devices/sample.ts';
import { ComfyGuests } from '../../../electron/core/guests/comfy-guests.ts';
import type { Offer } from '../../../electron/core/loop/offers.ts';
import { fail, ok } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import type { ComfySettings } from '../../../shared/settings.ts';
import { device } from '../guards/worlds.ts';

const GB = 1_000_000_000;

function bench(settings: ComfySettings, more: { isComfy?: boolean } = {}) {
  const one = {
    working: false as boolean | null,
    heldBytes: (9 * GB) as number | null,
    afterFreeBytes: 0.4 * GB,
    nowMs: 100_000,
    frees: [] as string[],
    offers: [] as readonly Offer[],
    events: [] as NewEvent[],
  };
  const rows = (): readonly ProcessMemory[] => [
    {
      pid: 7,
      startTimeTicks: 70,
      name: 'ComfyUI',
      deviceId: 'sim:0',
      bytes: one.heldBytes,
      gttBytes: null,
      type: 'C',
      source: 'nvml',
      sort: 'image',
    },
  ];
  const guests = new ComfyGuests({
    facts: async () =>
      ok([
        {
          pid: 7,
          startTimeTicks: 70,
          parentPid: 1,
          parentStartTimeTicks: null,
          uid: 1000,
          command: ['python3', 'main.py'],
          listeningPorts: [8188],
          routerPort: null,
          cpuMs: 0,
          state: 'S',
        },
      ]),
    rows,
    settings: () => settings,
    offer: (offers) => {
      one.offers = offers;
    },
    tell: (event) => one.events.push(event),
    monotonicMs: () => one.nowMs,
    until: async (condition) => condition(),
    sampleSoon: () => undefined,
    connect: (url) => ({
      prove: async () => (more.isComfy === false ? fail('not_proven', 'no') : ok({ version: '0.3' })),
      isWorking: async () => one.working,
      async free() {
        one.frees.push(url);
        one.heldBytes = one.afterFreeBytes;
        return ok(undefined);
      },
    }),
  });
  return { one, guests };
}

describe('a ComfyUI that holds memory', () => {
  it('is asked by itself only where the settings say so', async () => {
    for (const settings of ['found', ['http://localhost:8188']] as const) {
      const { one, guests } = bench(settings);
      expect(await guests.makeRoom('sim:0', 'a model was asked for')).toBe(8.6 * GB);
      expect(one.frees).toEqual(['http://127.0.0.1:8188']);
      expect(one.events).toMatchObject([{ kind: 'tenant_asked', numbers: { freedBytes: 8.6 * GB } }]);
    }
    for (const settings of [[], ['http://127.0.0.1:9999']]) {
      const { one, guests } = bench(settings);
      expect(await guests.makeRoom('sim:0', 'a model was asked for')).toBe(0);
      expect(one.frees).toEqual([]);
    }
  });

  it('that was only found is offered, and asked when a person says so', async () => {
    const { one, guests } = bench([]);
    await guests.look();
    expect(one.offers.map((offer) => offer.id)).toEqual(['comfyui 7']);
    expect(await one.offers[0]?.run(new AbortController().signal)).toMatchObject({ ok: true });
    expect(one.frees).toHaveLength(1);
    await guests.look();
    // It holds little now.
    expect(one.offers).toEqual([]);
  });

  it('that makes a picture is left alone, and asked as soon as it is done', async () => {
    const { one, guests } = bench('found');
    one.working = true;
    expect(await guests.makeRoom('sim:0', 'why')).toBe(0);
    one.working = null;
    expect(await guests.makeRoom('sim:0', 'why')).toBe(0);
    expect(one.frees).toEqual([]);
    one.working = false;
    expect(await guests.makeRoom('sim:0', 'why')).toBe(8.6 * GB);
  });

  it('that gave nothing is not asked again at once', async () => {
    const { one, guests } = bench('found');
    one.afterFreeBytes = 9 * GB;
    expect(await guests.makeRoom('sim:0', 'why')).toBe(0);
    expect(await guests.makeRoom('sim:0', 'why')).toBe(0);
    expect(one.frees).toHaveLength(1);
    one.nowMs += 61_000;
    await guests.makeRoom('sim:0', 'why');
    expect(one.frees).toHaveLength(2);
  });

  it('comes before a model where a floor is broken: what is on its way counts', async () => {
    const { one, guests } = bench('found');
    one.afterFreeBytes = 9 * GB;
    expect(guests.relieve([device({ id: 'sim:0', freeBytes: 9 * GB })])).toEqual(new Map());
    expect(one.frees).toEqual([]);
    guests.relieve([device({ id: 'sim:0', freeBytes: 1 })]);
    while (one.frees.length === 0) await new Promise(setImmediate);
    // It was asked, and gave nothing within its time: the guards wait for it no longer.
    while (one.events.length === 0) await new Promise(setImmediate);
    expect(guests.relieve([device({ id: 'sim:0', freeBytes: 1 })])).toEqual(new Map());
  });

  it('counts as giving in the very step a floor is seen broken, once it is known, and no longer when it works', async () => {
    const { one, guests } = bench('found');
    await guests.look();
    const short = [device({ id: 'sim:0', freeBytes: 1 })];
    expect(guests.relieve(short)).toEqual(new Map([['sim:0', 8.5 * GB]]));

    const busy = bench('found');
    await busy.guests.look();
    busy.one.working = true;
    expect(busy.guests.relieve(short).get('sim:0')).toBe(8.5 * GB);
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(busy.guests.relieve(short)).toEqual(new Map());
    expect([one.frees.length, busy.one.frees.length]).toEqual([1, 0]);
  });

  it('of which the driver does not tell what it holds is asked, and nothing is promised in its name', async () => {
    const { one, guests } = bench('found');
    one.heldBytes = null;
    await guests.look();
    const short = [device({ id: 'sim:0', freeBytes: 1 })];
    expect(guests.relieve(short)).toEqual(new Map());
    while (one.events.length === 0) await new Promise(setImmediate);
    expect(one.frees).toHaveLength(1);
    expect(one.events[0]?.reason).toMatch(/the driver does not tell what it holds/);
    expect(one.events[0]?.numbers).toMatchObject({ heldBytes: null, freedBytes: null });
  });

  it('on two cards is asked for the one that is short', async () => {
    const { one, guests } = bench('found');
    await guests.look();
    expect(guests.relieve([device({ id: 'sim:1', freeBytes: 1 })])).toEqual(new Map());
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(one.frees).toEqual([]);
  });

  it('another program of that name is not asked for anything', async () => {
    const { one, guests } = bench('found', { isComfy: false });
    await guests.look();
    expect(await guests.makeRoom('sim:0', 'why')).toBe(0);
    expect([one.frees, one.offers]).toEqual([[], []]);
  });
});
