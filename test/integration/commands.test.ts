import { readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LARGE_SHAPE, MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter } from '../support/router.ts';

/** Every command of the tray and the command line, over a real router and the whole runtime. */
const GB = 1_000_000_000;
const FOOTPRINTS = {
  small: { bytes: 2 * GB, rampMs: 0 },
  big: { bytes: 12 * GB, rampMs: 0 },
  other: { bytes: 14 * GB, rampMs: 0 },
  huge: { bytes: 40 * GB, rampMs: 0 },
  slow: { bytes: 3 * GB, rampMs: 0 },
};

let router: TestRouter;

beforeAll(async () => {
  router = await startRouter({
    models: {
      small: { shape: TINY_SHAPE, aliases: ['tiny'] },
      big: { shape: TINY_SHAPE },
      other: { shape: TINY_SHAPE },
      huge: { shape: TINY_SHAPE },
      slow: { shape: MIDDLE_SHAPE },
      page: { shape: LARGE_SHAPE },
    },
  });
});

afterAll(async () => {
  await router[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await router.restart();
});

async function bench(config = ''): Promise<LandlordBench> {
  const landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: FOOTPRINTS,
    config: `small: [small]\nidle: 1s\n${config}`,
  });
  landlord.card.set({ name: 'kwin_wayland', bytes: GB, type: 'G' });
  await landlord.seen();
  return landlord;
}

/** Seen idle by the adapter: right after a load that is not known yet. */
async function idle(landlord: LandlordBench, id: string): Promise<void> {
  await expect.poll(() => landlord.model(id).busy, { timeout: 15_000 }).toBe(false);
}

describe('load', () => {
  it('books, loads and says what it took; a bare name and an alias do', async () => {
    await using landlord = await bench();
    const done = await landlord.must({ type: 'load', model: 'tiny', force: false });
    expect(done.models).toEqual(['router/small']);
    await landlord.is('router/small', 'loaded');
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(2 * GB);
    expect((await landlord.must({ type: 'load', model: 'small', force: false })).message).toContain(
      'loaded already',
    );
  });

  it('is refused in numbers where it does not fit, leaves no trace, and may be forced (rules 1 and 4)', async () => {
    await using landlord = await bench();
    const denied = await landlord.runtime.command({ type: 'load', model: 'huge', force: false });
    expect(denied).toMatchObject({
      ok: false,
      error: {
        code: 'vram_denied',
        numbers: { requestedBytes: 40 * GB, capBytes: 21.6 * GB, bookedBytes: 0, floorBytes: 1.5 * GB },
      },
    });
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(0);
    expect(await router.statusOf('huge')).toBe('unloaded');
    const event = await landlord.event('denied', { model: 'router/huge' });
    expect(event.reason).toContain('40.0 GB');
    await landlord.must({ type: 'load', model: 'huge', force: true });
    await landlord.is('router/huge', 'loaded');
  });

  it('makes idle models leave first where that makes room', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await idle(landlord, 'router/big');
    await landlord.must({ type: 'load', model: 'other', force: false });
    const event = await landlord.event('evicted', { model: 'router/big' });
    expect(event.reason).toContain('router/other was asked for and needs 14.0 GB');
    expect(event.numbers.freedBytes).toBeGreaterThan(11.9 * GB);
    await landlord.is('router/big', 'unloaded');
    expect(landlord.runtime.state().restorable).toEqual(['router/big']);
  });

  it('is not served by evicting what is pinned, and says who would have to go', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await landlord.must({ type: 'pin', model: 'big' });
    await idle(landlord, 'router/big');
    const denied = await landlord.runtime.command({ type: 'load', model: 'other', force: false });
    expect(denied).toMatchObject({ ok: false, error: { code: 'vram_denied' } });
    await landlord.is('router/big', 'loaded');
    await landlord.must({ type: 'unpin', model: 'big' });
    await landlord.must({ type: 'load', model: 'other', force: false });
  });

  it('names what there is where the model is unknown', async () => {
    await using landlord = await bench();
    const none = await landlord.runtime.command({ type: 'load', model: 'nope', force: false });
    expect(none).toMatchObject({ ok: false, error: { code: 'unknown_model' } });
  });

  it('goes through once for two who ask at the same time', async () => {
    await using landlord = await bench();
    const both = await Promise.all([
      landlord.runtime.command({ type: 'load', model: 'slow', force: false }),
      landlord.runtime.command({ type: 'load', model: 'slow', force: false }),
    ]);
    expect(both.map((one) => one.ok)).toEqual([true, true]);
    expect(landlord.events.filter((event) => event.kind === 'loading')).toHaveLength(1);
    expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(3 * GB);
  });
});

describe('unload', () => {
  it('does not cut a busy model unless it is forced, and tells what came back', async () => {
    await using landlord = await bench();
    const chat = router.chat('page', { promptChars: 4_000, tokens: 400 });
    await landlord.is('router/page', 'loaded');
    await expect.poll(() => landlord.model('router/page').busy, { timeout: 15_000 }).toBe(true);
    const refused = await landlord.runtime.command({ type: 'unload', model: 'page', force: false });
    expect(refused).toMatchObject({ ok: false, error: { code: 'model_busy' } });
    expect(await router.statusOf('page')).toBe('loaded');
    await landlord.must({ type: 'unload', model: 'page', force: true });
    expect(await router.statusOf('page')).toBe('unloaded');
    expect(await chat.done).not.toBe(200);
  });
});

describe('big-model sleep', () => {
  it('unloads idle big ones, refuses big loads, spares small ones, and outlives a restart', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await landlord.must({ type: 'load', model: 'small', force: false });
    await idle(landlord, 'router/big');
    await landlord.must({ type: 'sleep', forMs: null });
    await landlord.event('evicted', { model: 'router/big' });
    await landlord.is('router/small', 'loaded');
    await landlord.restart();
    await landlord.seen();
    expect(landlord.runtime.state().asleep).toMatchObject({ until: null });
    const refused = await landlord.runtime.command({ type: 'load', model: 'big', force: false });
    expect(refused).toMatchObject({ ok: false, error: { code: 'big_models_asleep' } });
    await landlord.must({ type: 'wake' });
    expect(landlord.runtime.state().asleep).toBeNull();
    await landlord.must({ type: 'load', model: 'big', force: false });
  });

  it('ends by itself when its time is up', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'sleep', forMs: 700 });
    expect(landlord.runtime.state().asleep?.until).not.toBeNull();
    await landlord.event('woke');
    expect(landlord.runtime.state().asleep).toBeNull();
  });
});

describe('make room, restore and drain', () => {
  it('restore brings back what fits, and evicts nothing and nobody for it', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await idle(landlord, 'router/big');
    await landlord.must({ type: 'load', model: 'other', force: false });
    await landlord.must({ type: 'load', model: 'small', force: false });
    await idle(landlord, 'router/other');
    await idle(landlord, 'router/small');
    expect(landlord.runtime.state().restorable).toEqual(['router/big']);
    const from = landlord.events.length;
    const refused = await landlord.runtime.command({ type: 'restore' });
    expect(refused).toMatchObject({ ok: false, error: { code: 'vram_denied' } });
    expect(landlord.events.slice(from).filter((event) => event.kind === 'evicted')).toEqual([]);
    await landlord.is('router/other', 'loaded');
    await landlord.is('router/small', 'loaded');
  });

  it('restore forgets what a server had that is watched no more', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await idle(landlord, 'router/big');
    await landlord.must({ type: 'makeRoom', freeBytes: 20 * GB, deviceId: null });
    expect(landlord.runtime.state().restorable).toEqual(['router/big']);
    const config = await readFile(landlord.configFile, 'utf8');
    await writeFile(landlord.configFile, config.replace('name: router', 'name: another'));
    await landlord.is('another/big', 'unloaded');
    expect(await landlord.runtime.command({ type: 'restore' })).toMatchObject({
      ok: false,
      error: {
        message:
          'Nothing could be brought back; not router/big (there is no backend router any more, so it is forgotten).',
      },
    });
    expect(landlord.runtime.state().restorable).toEqual([]);
    expect(await landlord.runtime.command({ type: 'restore' })).toMatchObject({
      ok: true,
      value: { models: [] },
    });
  });

  it('a load takes no resident’s place (rule 9), and says who stays and why', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'small', force: false });
    await landlord.must({ type: 'load', model: 'other', force: false });
    await landlord.must({ type: 'pin', model: 'other' });
    await idle(landlord, 'router/other');
    await idle(landlord, 'router/small');
    const denied = await landlord.runtime.command({ type: 'load', model: 'big', force: false });
    if (denied.ok) throw new Error('loaded');
    expect(denied.error.message).toContain('router/other is pinned. router/small is resident.');
    await landlord.is('router/small', 'loaded');
  });

  it('two drains at once: the end of one does not end the other, and nothing loads meanwhile', async () => {
    await using landlord = await bench();
    const chat = router.chat('page', { promptChars: 3_000, tokens: 20 });
    await landlord.is('router/page', 'loaded');
    await expect.poll(() => landlord.model('router/page').busy, { timeout: 15_000 }).toBe(true);
    const leave = new AbortController();
    const first = landlord.runtime.command({ type: 'drain' }, leave.signal);
    const second = landlord.runtime.command({ type: 'drain' });
    leave.abort();
    expect((await first).ok).toBe(false);
    const load = await landlord.runtime.command({ type: 'load', model: 'small', force: true });
    expect(load).toMatchObject({ ok: false, error: { code: 'draining' } });
    chat.cancel();
    expect(await second).toMatchObject({ ok: true });
    await landlord.must({ type: 'load', model: 'small', force: false });
  });

  it('frees what was asked for and brings back what left', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'small', force: false });
    await landlord.must({ type: 'load', model: 'big', force: false });
    await idle(landlord, 'router/big');
    await idle(landlord, 'router/small');
    const done = await landlord.must({ type: 'makeRoom', freeBytes: 15 * GB, deviceId: null });
    expect(done.numbers?.freeBytes).toBeGreaterThanOrEqual(15 * GB);
    // Just enough: the resident stays.
    await landlord.is('router/small', 'loaded');
    expect(landlord.runtime.state().restorable).toEqual(['router/big']);
    await landlord.must({ type: 'restore' });
    await landlord.is('router/big', 'loaded');
    expect(landlord.runtime.state().restorable).toEqual([]);
    await landlord.must({ type: 'drain' });
    expect(landlord.runtime.state().models.every((model) => model.status === 'unloaded')).toBe(true);
    const drained = await landlord.event('drained');
    expect(drained.numbers.models).toBe(2);
  });

  it('says what is in the way where not enough can be freed', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'load', model: 'big', force: false });
    await landlord.must({ type: 'pin', model: 'big' });
    await idle(landlord, 'router/big');
    const short = await landlord.runtime.command({ type: 'makeRoom', freeBytes: 20 * GB, deviceId: null });
    expect(short).toMatchObject({ ok: false, error: { code: 'vram_denied' } });
    await landlord.is('router/big', 'loaded');
  });
});

describe('the guards', () => {
  it('are paused, and come back by themselves with what was chosen before', async () => {
    await using landlord = await bench();
    await landlord.must({ type: 'guards', mode: 'observe', forMs: null, backend: null });
    await landlord.must({ type: 'guards', mode: 'pause', forMs: 600, backend: null });
    expect(landlord.runtime.state().policy).toMatchObject({ guards: 'paused' });
    await expect.poll(() => landlord.runtime.state().policy.guards, { timeout: 5_000 }).toBe('observe');
    await landlord.restart();
    expect(landlord.runtime.state().policy.guards).toBe('observe');
    const unknown = await landlord.runtime.command({
      type: 'guards',
      mode: 'on',
      forMs: null,
      backend: 'nope',
    });
    expect(unknown).toMatchObject({ ok: false, error: { code: 'unknown_backend' } });
  });

  it('do nothing on a card that has vanished, and say so (rule 6)', async () => {
    await using landlord = await bench('floor: 20GB');
    await landlord.must({ type: 'load', model: 'small', force: true });
    await landlord.must({ type: 'load', model: 'big', force: true });
    landlord.card[Symbol.dispose]();
    await rm(landlord.cardFile);
    await landlord.event('device_lost', { limitMs: 15_000 });
    const from = landlord.events.length;
    expect(landlord.runtime.state().devices[0]?.health).toBe('stale');
    await sleep(7_000);
    expect(landlord.events.slice(from).filter((event) => ['evicted', 'killed'].includes(event.kind))).toEqual(
      [],
    );
    const denied = await landlord.runtime.command({ type: 'load', model: 'slow', force: false });
    expect(denied).toMatchObject({ ok: false, error: { code: 'vram_denied' } });
    if (!denied.ok) expect(denied.error.message).toContain('not known');
    landlord.card.start();
    await landlord.event('device_found', { from });
  });
});
