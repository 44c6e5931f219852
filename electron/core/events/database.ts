import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { LandlordEvent } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';
import { putAsideDamaged, salvageFacts } from './damaged-file.ts';
import { fromRow, toSql } from './event-rows.ts';
import type { StoredSample } from './event-store.ts';
import { MIGRATIONS } from './migrations.ts';
import type { RequestRecord } from './request-record.ts';
import { type RequestQuery, readRequests, writeRequests } from './request-rows.ts';
import { pruneForRoom, pruneStep } from './retention.ts';
import { readSamples, writeSamples } from './sample-rows.ts';
import { failureOf, StoreProblem } from './sqlite-failure.ts';
import type { DatabaseOptions, EventRow, Opened, SampleQuery } from './store-protocol.ts';

/** Some tens of thousands of readings: a moment, and room for weeks. */
const MOST_BATCHES_AT_OPEN = 50;

/**
 * `landlord.db`, with synchronous calls: used in the store's worker only. Throws what SQLite throws;
 * `failureOf` turns that into a sentence.
 *
 * WAL with synchronous NORMAL: a commit is in the file's log once it returns, so killing the process
 * loses nothing; a power cut may lose the last commits, never the database (https://sqlite.org/wal.html).
 */
export class LandlordDatabase implements Disposable {
  readonly #db: DatabaseSync;
  readonly #options: DatabaseOptions;
  readonly #file: string | null;

  private constructor(db: DatabaseSync, options: DatabaseOptions) {
    this.#db = db;
    this.#options = options;
    this.#file = identityOf(options.file);
  }

  /**
   * Opens the file, made where it is missing (0600). A damaged one is put aside for a fresh one, with
   * the facts that could be saved. `damaged`: known from use, though opening it may succeed.
   */
  static open(
    options: DatabaseOptions,
    nowMs: number,
    damaged: boolean,
  ): { readonly database: LandlordDatabase; readonly opened: Opened } {
    if (!damaged) {
      try {
        const database = LandlordDatabase.#openSound(options);
        return { database, opened: { ...database.#contents(), putAside: null } };
      } catch (error) {
        if (!failureOf(error).damaged) throw error;
      }
    }
    const saved = salvageFacts(options.file);
    const putAside = existsSync(options.file) ? putAsideDamaged(options.file, nowMs) : null;
    const database = LandlordDatabase.#openSound(options);
    database.setFacts(saved);
    database.#startIdsAt(Math.floor(nowMs / 1000));
    return { database, opened: { ...database.#contents(), putAside } };
  }

  static #openSound(options: DatabaseOptions): LandlordDatabase {
    protectFile(options.file);
    const db = new DatabaseSync(options.file, { timeout: 2000 });
    try {
      // Before the first table, or it has no effect.
      db.exec('PRAGMA auto_vacuum = INCREMENTAL');
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY');
      // KiB when negative. The worker's memory counts against the whole runtime's.
      db.exec(
        'PRAGMA cache_size = -512; PRAGMA journal_size_limit = 4194304; PRAGMA wal_autocheckpoint = 512',
      );
      const pageBytes = Number(db.prepare('PRAGMA page_size').get()?.page_size ?? 4096);
      db.exec(`PRAGMA max_page_count = ${Math.max(16, Math.floor(options.maxFileBytes / pageBytes))}`);
      migrate(db);
      // One that was full before could not be pruned either, since nothing could be written first.
      for (let batch = 0; batch < MOST_BATCHES_AT_OPEN && pruneForRoom(db); batch += 1);
      return new LandlordDatabase(db, options);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  #contents(): { readonly lastId: number; readonly facts: readonly (readonly [string, string])[] } {
    const highest = this.#db.prepare('SELECT max(id) AS id FROM events').get()?.id;
    const given = this.#db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'").get()?.seq;
    const facts = this.#db
      .prepare('SELECT key, value FROM facts')
      .all()
      .map((row) => [String(row.key), String(row.value)] as const);
    return { lastId: Math.max(Number(highest ?? 0), Number(given ?? 0)), facts };
  }

  /**
   * A database that takes a damaged one's place goes on above its ids, which can't be read any more:
   * seconds since 1970 are more than it can have given out. Who follows by id then misses nothing.
   */
  #startIdsAt(id: number): void {
    this.#db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)").run(id);
  }

  /**
   * Adds events under the ids they come with, as one transaction. One that is there already (a repeat
   * whose answer was lost) is left; one whose id another event has gets the next free one.
   */
  append(events: readonly EventRow[]): readonly number[] {
    return this.#transaction(() => {
      const insert = this.#db.prepare(
        `INSERT INTO events (id, at_ms, kind, reason, model, backend, session, device_id, numbers)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
      );
      const same = this.#db.prepare(
        'SELECT 1 FROM events WHERE id = ? AND at_ms = ? AND kind = ? AND reason = ?',
      );
      return events.map((event) => {
        const put = (id: number | null) =>
          insert.run(
            id,
            event.atMs,
            event.kind,
            event.reason,
            event.model,
            event.backend,
            event.session,
            event.deviceId,
            event.numbers,
          );
        if (put(event.id).changes === 1) return event.id;
        if (same.get(event.id, event.atMs, event.kind, event.reason) !== undefined) return event.id;
        return Number(put(null).lastInsertRowid);
      });
    });
  }

  /** Oldest first; the newest `limit` that match. */
  query(query: EventQuery): readonly LandlordEvent[] {
    const { sql, values } = toSql(query);
    return this.#db
      .prepare(sql)
      .all(...values)
      .map(fromRow)
      .reverse();
  }

  addSamples(samples: readonly StoredSample[]): void {
    this.#transaction(() => writeSamples(this.#db, samples));
  }

  querySamples(query: SampleQuery): readonly StoredSample[] {
    return readSamples(this.#db, query);
  }

  addRequests(records: readonly RequestRecord[]): void {
    this.#transaction(() => writeRequests(this.#db, records));
  }

  queryRequests(query: RequestQuery): readonly RequestRecord[] {
    return readRequests(this.#db, query);
  }

  setFacts(facts: readonly (readonly [string, string | null])[]): void {
    this.#transaction(() => {
      const put = this.#db.prepare(
        'INSERT INTO facts (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
      );
      const remove = this.#db.prepare('DELETE FROM facts WHERE key = ?');
      for (const [key, value] of facts) value === null ? remove.run(key) : put.run(key, value);
    });
  }

  /** One small batch of what is too old or too much; true when there is more. */
  prune(nowMs: number): boolean {
    return pruneStep(this.#db, this.#options.retention, nowMs);
  }

  [Symbol.dispose](): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      this.#db.close();
    }
  }

  #transaction<T>(work: () => T): T {
    // A file that has lost its name takes everything, and nobody finds it again.
    if (identityOf(this.#options.file) !== this.#file)
      throw new StoreProblem('its file was taken away (is the state folder still there?)');
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      // A full disk has rolled back by itself already.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

/** SQLite gives its log and index the permissions of the database file. */
function protectFile(file: string): void {
  // Not opened when there: closing a descriptor drops SQLite's own locks on the file (https://sqlite.org/howtocorrupt.html, 2.2).
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
}

/** null: there is none. */
function identityOf(file: string): string | null {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

function migrate(db: DatabaseSync): void {
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version ?? 0);
  if (version > MIGRATIONS.length) {
    throw new StoreProblem(
      `its database was written by a newer version (${version}, this one knows ${MIGRATIONS.length}); update, or use another --state-dir`,
    );
  }
  for (const [index, step] of MIGRATIONS.entries()) {
    if (index < version) continue;
    db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${index + 1}; COMMIT`);
  }
}
