import {
  chmod,
  mkdir,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteStore } from '../../../electron/core/events/sqlite-store.ts';
import type { StoreOptions } from '../../../electron/core/events/store-options.ts';
import type { EventKind, LandlordEvent, NewEvent } from '../../../shared/events.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
let dir = '';
let file = '';
let troubles: NewEvent[] = [];
let open: SqliteStore[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-store-'));
  file = join(dir, 'landlord.db');
  troubles = [];
  open = [];
});
afterEach(async () => {
  for (const store of open) await store.close();
  await rm(dir, { recursive: true, force: true });
});

function openStore(options: Partial<StoreOptions> = {}): SqliteStore {
  const store = new SqliteStore({
    file,
    now: () => NOW,
    onTrouble: (event) => {
      troubles.push(event);
      void store.append(event, NOW);
    },
    retryMs: 20,
    // A loaded machine is not what is tested here.
    answerMs: 25_000,
    openMs: 25_000,
    ...options,
  });
  open.push(store);
  return store;
}

const event = (reason: string, extra: Partial<NewEvent> = {}): NewEvent => ({
  kind: 'evicted',
  reason,
  numbers: {},
  ...extra,
});

async function reasons(
  store: SqliteStore,
  query: Parameters<SqliteStore['query']>[0] = {},
): Promise<string[]> {
  const found = await store.query(query);
  if (!found.ok) throw new Error(found.error.message);
  return found.value.map((one) => one.reason);
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('events', () => {
  it('come back as they went in, with ascending ids across a restart', async () => {
    const first = openStore();
    const full: NewEvent = {
      kind: 'killed',
      reason: "It's gone; DROP TABLE events; -- ✓",
      model: 'router/a',
      backend: 'router',
      session: 's',
      deviceId: 'pci:0000:03:00.0',
      numbers: { freedBytes: 9_007_199_254_740_991, tookMs: null, rate: 0.25 },
    };
    const stored = await first.append(full, NOW);
    expect(stored).toEqual({ ...full, id: 1, at: '2026-01-02T03:04:05.000Z' });
    const many = await Promise.all(
      Array.from({ length: 50 }, (_, index) => first.append(event(`e${index}`), NOW)),
    );
    expect(many.map((one) => one.id)).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
    await first.close();

    const second = openStore();
    const found = await second.query({ limit: 5000 });
    expect(found.ok && found.value[0]).toEqual(stored);
    expect(found.ok && found.value).toHaveLength(51);
    expect((await second.append(event('next'), NOW)).id).toBe(52);
    expect(troubles).toEqual([]);
  });

  it('are not told before they are on disk: a kill in between would give their numbers to others', async () => {
    const store = openStore();
    await store.append(event('first'), NOW);
    const disk = new DatabaseSync(file);
    const appended: Promise<unknown>[] = [];
    for (let round = 0; round < 200; round += 1) {
      const asked = store.query({ limit: 5000 });
      await Promise.resolve();
      appended.push(store.append(event(`e${round}`), NOW));
      const found = await asked;
      const there = disk
        .prepare('SELECT id FROM events')
        .all()
        .map((row) => row.id);
      expect(found.ok && found.value.filter(({ id }) => !there.includes(id))).toEqual([]);
    }
    await Promise.all(appended);
    expect(await reasons(store, { limit: 5000 })).toHaveLength(201);
    disk.close();
  });

  it('keep their ids above those of pruned ones after a restart', async () => {
    const first = openStore({ retention: { eventMaxAgeMs: 1000, eventMaxRows: 0 }, pruneEveryMs: 10 });
    for (let count = 0; count < 5; count += 1) await first.append(event('old'), NOW - 2000);
    await until(async () => (await reasons(first)).length === 0);
    await first.close();
    expect((await openStore().append(event('new'), NOW)).id).toBe(6);
  });

  it('of one turn of the event loop are one transaction: all of them are stored or none', async () => {
    const store = openStore();
    await store.append(event('first'), NOW);
    const database = new DatabaseSync(file, { timeout: 2000 });
    const onDisk = () =>
      database
        .prepare("SELECT reason FROM events WHERE kind = 'evicted' ORDER BY id")
        .all()
        .map((row) => row.reason);
    database.exec(`CREATE TRIGGER no_b BEFORE INSERT ON events WHEN NEW.reason = 'b'
                   BEGIN SELECT RAISE(ABORT, 'not now'); END`);
    await Promise.all([store.append(event('a'), NOW), store.append(event('b'), NOW)]);
    expect(store.trouble()).toContain('not now');
    expect(onDisk()).toEqual(['first']);
    database.exec('DROP TRIGGER no_b');
    await until(() => store.trouble() === null);
    expect(onDisk()).toEqual(['first', 'a', 'b']);
    database.close();
  });

  it('are found by id, kind, model and time; the newest stay within the limit, oldest first', async () => {
    const store = openStore();
    const kinds: readonly EventKind[] = ['evicted', 'killed', 'denied'];
    for (let count = 1; count <= 9; count += 1) {
      await store.append(
        event(`e${count}`, { kind: kinds[count % 3] ?? 'evicted', model: count > 5 ? 'r/a' : 'r/b' }),
        NOW + count,
      );
    }
    expect(await reasons(store, { limit: 3 })).toEqual(['e7', 'e8', 'e9']);
    expect(await reasons(store, { afterId: 7 })).toEqual(['e8', 'e9']);
    expect(await reasons(store, { beforeId: 3 })).toEqual(['e1', 'e2']);
    expect(await reasons(store, { kinds: ['killed', 'denied'], model: 'r/a' })).toEqual(['e7', 'e8']);
    expect(await reasons(store, { kinds: [] })).toEqual([]);
    expect(await reasons(store, { since: NOW + 8 })).toEqual(['e8', 'e9']);
    expect(await reasons(store, { limit: 0 })).toEqual(['e9']);
    expect(await reasons(store, { limit: Number.NaN })).toHaveLength(9);
  });

  it('keep an unknown number unknown, and survive a clock that gives nonsense', async () => {
    const store = openStore();
    const odd = await store.append(
      event('x'.repeat(9000), { numbers: { a: Number.NaN, b: Number.POSITIVE_INFINITY, c: null, d: 0 } }),
      Number.NaN,
    );
    expect(odd.numbers).toEqual({ a: null, b: null, c: null, d: 0 });
    expect(odd.reason.length).toBeLessThan(4100);
    const found = await store.query({});
    expect(found.ok && found.value).toEqual([odd]);
  });

  it('lie in a file only the user may read, also one that was there with loose permissions', async () => {
    const first = openStore();
    await first.append(event('a'), NOW);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(`${file}-wal`)).mode & 0o777).toBe(0o600);
    await first.close();
    await chmod(file, 0o644);
    await openStore().append(event('b'), NOW);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });
});

describe('facts', () => {
  it('outlive a restart, are found by prefix and can be removed', async () => {
    const first = openStore();
    expect(await first.set('pin/router/a', { at: 1 })).toEqual({ ok: true, value: undefined });
    await first.set('pin/router/b', true);
    await first.set('sleep', null);
    await first.set('pin/router/b', undefined);
    await first.close();
    const second = openStore();
    expect(await second.all('pin/')).toEqual({ 'pin/router/a': { at: 1 } });
    expect(await second.get('sleep')).toBeNull();
    expect(await second.get('nothing')).toBeUndefined();
  });

  it('that are no JSON are refused with a sentence', async () => {
    const loop: { self?: unknown } = {};
    loop.self = loop;
    expect(await openStore().set('x', loop)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  });
});

describe('when the disk takes nothing', () => {
  /** Fills the file up to its limit; a real SQLITE_FULL. */
  async function fill(store: SqliteStore): Promise<LandlordEvent[]> {
    const stored: LandlordEvent[] = [];
    while (store.trouble() === null) stored.push(await store.append(event('f'.repeat(3900)), NOW));
    return stored;
  }

  it('full: says so once, goes on from memory, and writes what it kept under the same ids', async () => {
    const store = openStore({ maxFileBytes: 200_000 });
    const stored = await fill(store);
    expect(store.trouble()).toBe('the disk is full');
    const during = await store.append(event('during'), NOW);
    const alsoDuring = await store.append(event('also'), NOW);
    expect(alsoDuring.id).toBe(during.id + 1);
    expect(await store.set('pin', true)).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    expect(await store.get('pin')).toBe(true);
    // From disk and memory alike.
    const ids = await store.query({ limit: 5000 });
    expect(ids.ok && ids.value.map((one) => one.id)).toEqual(
      Array.from({ length: alsoDuring.id }, (_, at) => at + 1),
    );
    expect(troubles).toHaveLength(1);
    expect(troubles[0]).toMatchObject({ kind: 'storage_failed' });

    // Room again, made by another connection.
    const other = new DatabaseSync(file, { timeout: 2000 });
    other.exec("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE reason LIKE 'fff%' LIMIT 20)");
    await until(() => store.trouble() === null);
    const rows = other.prepare("SELECT id FROM events WHERE reason IN ('during', 'also') ORDER BY id").all();
    expect(rows.map((row) => row.id)).toEqual([during.id, alsoDuring.id]);
    expect(other.prepare("SELECT value FROM facts WHERE key = 'pin'").get()).toMatchObject({ value: 'true' });
    expect(other.prepare('SELECT max(id) AS id FROM events').get()?.id).toBe(stored.length + 3);
    other.close();
    expect(troubles).toHaveLength(1);
  });

  it('keeps the newest thousand of very many, and says how many were lost', async () => {
    await writeFile(join(dir, 'blocked'), '');
    file = join(dir, 'blocked', 'landlord.db');
    const store = openStore();
    await store.ready();
    for (let count = 0; count < 1100; count += 1) await store.append(event(`e${count}`), NOW);
    const kept = await reasons(store, { limit: 5000 });
    expect(kept).toHaveLength(1000);
    expect(kept.at(-1)).toBe('e1099');
    await rm(join(dir, 'blocked'));
    await mkdir(join(dir, 'blocked'));
    await until(() => troubles.length === 2);
    // 1100 and the event about the trouble itself.
    expect(troubles[1]).toMatchObject({ numbers: { dropped: 101 } });
    await until(async () => (await reasons(store, { limit: 5000 })).length === 1001);
  });

  it('a folder that is not there: says so once, and recovers by itself with the events and facts kept', async () => {
    file = join(dir, 'later', 'landlord.db');
    const store = openStore();
    const early = await store.append(event('early'), NOW);
    expect(store.trouble()).not.toBeNull();
    expect(await store.query({ kinds: ['evicted'] })).toEqual({ ok: true, value: [early] });
    await store.set('pin', 1);
    expect(troubles).toHaveLength(1);
    await mkdir(join(dir, 'later'));
    await until(() => store.trouble() === null);
    const after = await store.append(event('after'), NOW);
    expect(after.id).toBeGreaterThan(early.id);
    await store.close();
    const again = openStore();
    expect(await reasons(again, { kinds: ['evicted'] })).toEqual(['early', 'after']);
    expect(await again.get('pin')).toBe(1);
  });

  it('a file that is taken away with its folder: says so, and begins another with the facts kept', async () => {
    file = join(dir, 'state', 'landlord.db');
    await mkdir(join(dir, 'state'));
    const store = openStore();
    const before = await store.append(event('before'), NOW);
    await store.set('pin', 1);
    await rm(join(dir, 'state'), { recursive: true });
    const blind = await store.append(event('blind'), NOW);
    expect(store.trouble()).toContain('taken away');
    expect(blind.id).toBeGreaterThan(before.id);
    await mkdir(join(dir, 'state'));
    await until(() => store.trouble() === null);
    await store.close();
    const again = openStore();
    expect(await reasons(again, { kinds: ['evicted'] })).toEqual(['blind']);
    expect(await again.get('pin')).toBe(1);
  });

  it('is tried once more at the end: what was kept in memory is not lost with it', async () => {
    file = join(dir, 'later', 'landlord.db');
    const store = openStore({ retryMs: 600_000 });
    await store.append(event('kept'), NOW);
    await store.set('pin', 1);
    await mkdir(join(dir, 'later'));
    await store.close();
    const again = openStore();
    expect(await reasons(again, { kinds: ['evicted'] })).toEqual(['kept']);
    expect(await again.get('pin')).toBe(1);
  });

  it('a file that opens late: what earlier runs had kept in it is told before anything is written over it', async () => {
    const first = openStore();
    await first.set('pins', ['old']);
    await first.set('other', 1);
    await first.close();
    await rename(file, `${file}.away`);
    await mkdir(file);
    const late: (readonly [string, unknown])[] = [];
    const store: SqliteStore = openStore({
      onLate: (facts) => {
        late.push(...facts);
        void store.set('pins', ['old', 'new']);
      },
    });
    expect(await store.get('pins')).toBeUndefined();
    await store.set('pins', ['new']);
    await rm(file, { recursive: true });
    await rename(`${file}.away`, file);
    await until(() => store.trouble() === null);
    expect(late).toEqual([
      ['other', 1],
      ['pins', ['old']],
    ]);
    await store.close();
    const again = openStore({ onLate: () => expect.unreachable('it opened in time') });
    expect(await again.get('pins')).toEqual(['old', 'new']);
    expect(await again.get('other')).toBe(1);
  });

  it('gives events of a run that could not open the file ids above all that are in it', async () => {
    const first = openStore();
    await first.append(event('before'), NOW);
    await first.close();
    await rename(file, `${file}.away`);
    await mkdir(file);
    const store = openStore();
    const blind = await store.append(event('blind'), NOW);
    await rm(file, { recursive: true });
    await rename(`${file}.away`, file);
    await until(() => store.trouble() === null);
    const found = await store.query({ kinds: ['evicted'] });
    expect(found.ok && found.value.map((one) => one.reason)).toEqual(['before', 'blind']);
    expect(found.ok && found.value[1]?.id).toBe(blind.id);
  });

  it('a file that is no database: keeps it aside, says where, and begins a fresh one', async () => {
    await writeFile(file, 'this is no database\n'.repeat(500));
    const store = openStore();
    const stored = await store.append(event('a'), NOW);
    expect(store.trouble()).toBeNull();
    expect(await readdir(dir)).toContain('landlord.db.corrupt-20260102T030405Z');
    expect(troubles).toHaveLength(1);
    expect(troubles[0]?.reason).toContain('landlord.db.corrupt-20260102T030405Z');
    // Above any id the broken file may have given out.
    expect(stored.id).toBeGreaterThan(1_000_000);
  });

  it('a database damaged in use: begins a fresh one with the facts it knows and the event it was writing', async () => {
    const store = openStore();
    await store.set('pin/a', true);
    for (let count = 0; count < 300; count += 1) await store.append(event('f'.repeat(900)), NOW);
    // What a failing disk does: pages that hold something else. The header stays, so that it still opens.
    const other = new DatabaseSync(file, { timeout: 2000 });
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    other.close();
    const raw = await openFile(file, 'r+');
    const { size } = await raw.stat();
    await raw.write(Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096);
    await raw.close();
    const stored: LandlordEvent[] = [];
    while (troubles.length === 0) stored.push(await store.append(event('after the damage'), NOW));
    await until(() => store.trouble() === null);
    expect((await readdir(dir)).filter((name) => /corrupt-\w+$/.test(name))).toHaveLength(1);
    expect((await reasons(store, { kinds: ['evicted'] })).at(-1)).toBe('after the damage');
    await store.close();
    const again = openStore();
    expect(await again.all('pin/')).toEqual({ 'pin/a': true });
  });

  it('a database found damaged at the start: saves the facts that can still be read, pins above all', async () => {
    const first = openStore();
    await first.set('pin/a', true);
    for (let count = 0; count < 50; count += 1) await first.append(event('f'.repeat(900)), NOW);
    await first.close();
    const reader = new DatabaseSync(file);
    const factsPage = Number(
      reader.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'facts'").get()?.rootpage,
    );
    reader.close();
    const raw = await readFile(file);
    const fresh = raw.map((byte, at) => (at < 4096 || Math.floor(at / 4096) + 1 === factsPage ? byte : 0xa5));
    await writeFile(file, fresh);

    const store = openStore();
    expect(await store.get('pin/a')).toBe(true);
    expect(troubles[0]?.reason).toContain('damaged');
    await store.close();
    expect(await openStore().all('')).toEqual({ 'pin/a': true });
  });

  it('a fact whose answer came late and was a refusal: is written once it can be', async () => {
    const store = openStore({ answerMs: 20 });
    await store.ready();
    const other = new DatabaseSync(file, { timeout: 2000 });
    other.exec('BEGIN IMMEDIATE');
    expect(await store.set('pin', 1)).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    await until(() => store.trouble() !== null);
    expect(store.trouble()).toContain('locked');
    other.exec('COMMIT');
    await until(() => store.trouble() === null);
    expect(other.prepare("SELECT value FROM facts WHERE key = 'pin'").get()).toMatchObject({ value: '1' });
    other.close();
  });

  it('a database of a newer version: leaves it as it is and says so', async () => {
    const first = openStore();
    await first.append(event('a'), NOW);
    await first.close();
    const other = new DatabaseSync(file);
    other.exec('PRAGMA user_version = 99');
    other.close();
    const store = openStore();
    await store.append(event('b'), NOW);
    expect(store.trouble()).toContain('newer version');
    expect((await readdir(dir)).some((name) => name.includes('corrupt'))).toBe(false);
  });

  it('a thread that dies: starts another and loses nothing', async () => {
    // Dies at the first event whose reason asks for it, once.
    const workerUrl = new URL('./mortal-store-worker.ts', import.meta.url);
    process.env.LANDLORD_TEST_DEATH_FILE = join(dir, 'died');
    try {
      const store = openStore({ workerUrl });
      await store.append(event('a'), NOW);
      await store.append(event('die now'), NOW);
      expect(store.trouble()).toContain('thread');
      await store.append(event('b'), NOW);
      await until(() => store.trouble() === null);
      expect(await reasons(store, { kinds: ['evicted'] })).toEqual(['a', 'die now', 'b']);
      expect(troubles).toHaveLength(1);
    } finally {
      delete process.env.LANDLORD_TEST_DEATH_FILE;
    }
  });

  it('a disk that does not answer: keeps nobody waiting, and is well again when it does', async () => {
    const store = openStore({ answerMs: 20, silentMs: 50 });
    await store.append(event('a'), NOW);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    const stored = await store.append(event('b'), NOW);
    expect(stored.reason).toBe('b');
    await until(() => store.trouble() !== null);
    expect(store.trouble()).toContain('has not answered');
    expect(await store.set('pin', 1)).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    other.exec('COMMIT');
    other.close();
    await until(() => store.trouble() === null);
    expect(await reasons(store, { kinds: ['evicted'] })).toEqual(['a', 'b']);
    await store.close();
    expect(await openStore().get('pin')).toBe(1);
  });
});

describe('samples', () => {
  const sample = (atMs: number, usedBytes: number | null) => ({
    atMs,
    deviceId: 'sim:0',
    totalBytes: 100,
    usedBytes,
    freeBytes: usedBytes === null ? null : 100 - usedBytes,
    gttUsedBytes: null,
    tenants: { desktop: usedBytes, 'router/a': null },
  });

  it('are kept as the fullest of each ten seconds, and as the fullest of each minute once those are gone', async () => {
    const store = openStore({ pruneEveryMs: 10 });
    const old = NOW - 3 * 86_400_000 - (NOW % 60_000);
    for (let second = 0; second < 60; second += 1)
      store.addSamples([sample(old + second * 1000, second === 13 ? 90 : 40)]);
    // Old rows go once newer ones have taken their place.
    for (const hoursAgo of [40, 30, 20]) store.addSamples([sample(NOW - hoursAgo * 3_600_000, 1)]);
    const recent = NOW - (NOW % 60_000);
    for (const [at, used] of [
      [0, 10],
      [3000, 30],
      [9999, 20],
      [10_000, null],
      [11_000, 5],
    ] as const) {
      store.addSamples([sample(recent + at, used)]);
    }
    await store.close();
    const again = openStore({ pruneEveryMs: 10 });
    await until(async () => {
      const found = await again.samples({ sinceMs: 0 });
      return found.ok && found.value.length === 6;
    });
    const found = await again.samples({ sinceMs: 0, deviceId: 'sim:0' });
    expect(found.ok && found.value.filter(({ usedBytes }) => usedBytes !== 1)).toEqual([
      sample(old + 13_000, 90),
      sample(recent + 3000, 30),
      sample(recent + 11_000, 5),
    ]);
    expect(await again.samples({ sinceMs: 0, deviceId: 'other' })).toEqual({ ok: true, value: [] });
    const last = await again.samples({ sinceMs: recent + 10_000 });
    expect(last.ok && last.value).toHaveLength(1);
  });

  it('come thinned to the fullest of each step, with the last ten seconds that are not written yet', async () => {
    const store = openStore();
    const start = NOW - (NOW % 600_000) - 600_000;
    for (let row = 0; row < 30; row += 1)
      store.addSamples([sample(start + row * 10_000, row === 7 ? 90 : row)]);
    await until(async () => {
      const all = await store.samples({ sinceMs: start });
      return all.ok && all.value.length === 30;
    });
    const thin = await store.samples({ sinceMs: start, stepMs: 150_000 });
    expect(thin.ok && thin.value.map((one) => one.usedBytes)).toEqual([90, 28, 29]);
  });

  it('tell who was used in their time, whichever reading is the fullest', async () => {
    const store = openStore();
    const start = NOW - (NOW % 60_000);
    store.addSamples([{ ...sample(start, 50), used: ['router/a'] }]);
    store.addSamples([{ ...sample(start + 4000, 80), used: ['router/b'] }]);
    store.addSamples([sample(start + 20_000, 10)]);
    await store.close();
    const again = openStore();
    const found = await again.samples({ sinceMs: 0 });
    expect(found.ok && found.value.map((one) => [one.usedBytes, one.used])).toEqual([
      [80, ['router/a', 'router/b']],
      [10, undefined],
    ]);
  });
});
