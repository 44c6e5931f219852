import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Slot, SlotKeeper } from '../../../electron/core/backends/router-slots.ts';
import type { ModelView } from '../../../electron/core/loop/model-view.ts';
import { Parking } from '../../../electron/core/parking/parking.ts';
import { fail, ok } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { modelView } from '../../support/model-view.ts';

/** A server that may keep less than it says, over real files. */
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-park-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Bench {
  readonly parking: Parking;
  readonly events: NewEvent[];
  readonly facts: Map<string, unknown>;
  readonly restarted: string[];
  readonly restored: { readonly slot: number; readonly file: string }[];
  slots: Slot[];
  /** Tokens and bytes it answers with; bytes that are really written. */
  save: (slot: number) => { tokens: number; bytes: number; written: number };
  restore: (file: string) => number | string;
  view: ModelView;
  nowMs: number;
}

function bench(facts = new Map<string, unknown>()): Bench {
  const args = ['llama-server', '-m', '/models/talk.gguf', '--slot-save-path', folder];
  const one: Bench = {
    events: [],
    facts,
    restarted: [],
    restored: [],
    slots: [{ id: 0, isProcessing: false, tokens: 500 }],
    save: () => ({ tokens: 500, bytes: 2000, written: 2000 }),
    restore: () => 500,
    view: modelView({ name: 'talk', status: 'loaded', observed: { args } }),
    nowMs: 1000,
    parking: new Parking({
      view: () => one.view,
      slots: (): SlotKeeper => ({
        list: async () => ok(one.slots),
        async save(_model, slot, file) {
          const { written, ...said } = one.save(slot);
          if (written > 0) writeFileSync(join(folder, file), Buffer.alloc(written));
          return ok(said);
        },
        async restore(_model, slot, file) {
          one.restored.push({ slot, file });
          const said = one.restore(file);
          return typeof said === 'string' ? fail('backend_refused', said) : ok({ tokens: said });
        },
      }),
      settings: () => ({ limitBytes: 5000, keepMs: 60_000 }),
      store: {
        async set(key, value) {
          if (value === null) facts.delete(key);
          else facts.set(key, JSON.parse(JSON.stringify(value)));
          return ok(undefined);
        },
        all: async () => Object.fromEntries(facts),
      },
      tell: (event) => one.events.push(event),
      epochMs: () => one.nowMs++,
      async restart(id) {
        one.restarted.push(id);
        return true;
      },
      lane: async () => null,
      changed: () => undefined,
    }),
  };
  return one;
}

const LIMIT_MS = 5_000;

describe('parking', () => {
  it('saves what is long enough and idle, and its next load brings it back into the same slot', async () => {
    const one = bench();
    one.slots = [
      { id: 0, isProcessing: false, tokens: 3 },
      { id: 1, isProcessing: false, tokens: 500 },
      { id: 2, isProcessing: true, tokens: 900 },
    ];
    expect(await one.parking.park('router/talk', LIMIT_MS)).toBe(1);
    expect(one.parking.parked('router/talk')).toMatchObject({ conversations: 1, tokens: 500, bytes: 2000 });
    one.slots = one.slots.map((slot) => ({ ...slot, tokens: 0, isProcessing: false }));
    one.parking.loaded(one.view);
    await one.parking.before('router/talk');
    expect(one.restored).toMatchObject([{ slot: 1 }]);
    expect(readdirSync(folder)).toEqual([]);
    expect(one.facts.size).toBe(0);
    expect(one.events.map((event) => event.kind)).toEqual(['parked', 'unparked']);
  });

  it.each([
    ['nothing', { tokens: 0, bytes: 40, written: 40 }],
    ['less than it held', { tokens: 200, bytes: 900, written: 900 }],
    ['a file that is not there', { tokens: 500, bytes: 2000, written: 0 }],
    ['a file that is cut short', { tokens: 500, bytes: 2000, written: 1999 }],
  ])('a save that kept %s is none, whatever was answered (48-slot-save-no-op)', async (_what, said) => {
    const one = bench();
    one.save = () => said;
    expect(await one.parking.park('router/talk', LIMIT_MS)).toBe(0);
    expect(one.parking.parked('router/talk')).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
    expect(one.events).toMatchObject([{ kind: 'parking_failed' }]);
    await one.parking.park('router/talk', LIMIT_MS);
    expect(one.events).toHaveLength(1);
  });

  it.each([
    ['refused', 'no available space in KV cache'],
    ['came back short', 499],
  ])('a restore that was %s starts the instance anew and is not tried again', async (_what, said) => {
    const one = bench();
    await one.parking.park('router/talk', LIMIT_MS);
    one.slots = [{ id: 0, isProcessing: false, tokens: 0 }];
    one.restore = () => said;
    one.parking.loaded(one.view);
    await one.parking.before('router/talk');
    expect(one.restarted).toEqual(['router/talk']);
    expect(one.events.at(-1)?.kind).toBe('parking_failed');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('other weights, flags or another build are given nothing of it', async () => {
    const one = bench();
    await one.parking.park('router/talk', LIMIT_MS);
    one.slots = [{ id: 0, isProcessing: false, tokens: 0 }];
    one.view = modelView({
      name: 'talk',
      status: 'loaded',
      observed: { args: [...(one.view.observed.args ?? []), '--cache-type-k', 'q8_0'] },
    });
    one.parking.loaded(one.view);
    await one.parking.before('router/talk');
    expect(one.restored).toEqual([]);
    expect(one.events.at(-1)?.reason).toMatch(/other weights, flags or another build/);
  });

  it('keeps to its budget, and takes up after a restart what is really there', async () => {
    const one = bench();
    const instance = {
      pid: 7,
      startTimeTicks: 1,
      command: [],
      port: 1,
      parentPid: 1,
      parentStartTimeTicks: 1,
    };
    for (const startTimeTicks of [1, 2, 3]) {
      const { observed } = one.view;
      one.view = { ...one.view, observed: { ...observed, process: { ...instance, startTimeTicks } } };
      await one.parking.park('router/talk', LIMIT_MS);
    }
    // 5 000 bytes hold two of 2 000.
    expect(one.parking.parked('router/talk')?.conversations).toBe(2);
    expect(readdirSync(folder)).toHaveLength(2);
    const [name] = readdirSync(folder);
    writeFileSync(join(folder, name ?? ''), 'damaged');
    writeFileSync(join(folder, 'landlord-of-a-killed-one.slot'), 'left');
    writeFileSync(join(folder, 'somebody.bin'), 'not ours');
    const blind = bench(new Map());
    await blind.parking.open(folder, false);
    expect(readdirSync(folder)).toHaveLength(4);
    const next = bench(one.facts);
    await next.parking.open(folder, true);
    expect(next.parking.parked('router/talk')?.conversations).toBe(1);
    expect(readdirSync(folder)).toHaveLength(2);
    expect(readdirSync(folder)).toContain('somebody.bin');
  });

  it('the same process saved twice leaves one, and one that stays after all leaves none', async () => {
    const one = bench();
    await one.parking.park('router/talk', LIMIT_MS);
    await one.parking.park('router/talk', LIMIT_MS);
    expect(one.parking.parked('router/talk')?.conversations).toBe(1);
    await one.parking.unpark('router/talk');
    expect(one.parking.parked('router/talk')).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('a folder that others can read gets nothing', async () => {
    chmodSync(folder, 0o750);
    const one = bench();
    expect(await one.parking.park('router/talk', LIMIT_MS)).toBe(0);
    expect(one.events).toMatchObject([{ kind: 'parking_failed' }]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('where memory is wanted at once nothing is waited for', async () => {
    const one = bench();
    expect(await one.parking.park('router/talk', 0)).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });
});
