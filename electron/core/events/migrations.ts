/**
 * The steps of `landlord.db`, by SQLite's user_version: a database at version n gets the steps from
 * index n on, each in a transaction of its own. A step that was released is never changed.
 *
 * AUTOINCREMENT, so that ids of pruned events are never given out again.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    model TEXT,
    backend TEXT,
    session TEXT,
    device_id TEXT,
    numbers TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_time ON events (at_ms);
  CREATE INDEX events_by_kind ON events (kind, id);
  CREATE INDEX events_by_model ON events (model, id) WHERE model IS NOT NULL;

  CREATE TABLE samples (
    step_ms INTEGER NOT NULL,
    bucket_ms INTEGER NOT NULL,
    device_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    total_bytes INTEGER,
    used_bytes INTEGER,
    free_bytes INTEGER,
    gtt_used_bytes INTEGER,
    tenants TEXT NOT NULL,
    PRIMARY KEY (step_ms, bucket_ms, device_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE facts (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    model TEXT,
    backend TEXT,
    agent TEXT,
    class TEXT NOT NULL,
    route TEXT NOT NULL,
    reason TEXT,
    status INTEGER,
    prompt_tokens INTEGER,
    generated_tokens INTEGER,
    waited_ms INTEGER NOT NULL,
    first_byte_ms INTEGER,
    total_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX requests_by_time ON requests (at_ms);
  `,
  // Models that were used while a row's time ran, as keys of an object: what a replay needs to know who was idle.
  `
  ALTER TABLE samples ADD COLUMN used TEXT NOT NULL DEFAULT '{}';
  `,
  // What parked conversations save is told with the request that found its own.
  `
  ALTER TABLE requests ADD COLUMN saved_prompt_ms INTEGER;
  `,
  // Coarser rows for charts of a week, a month and a year, made of those of a minute that are there. With max()
  // SQLite takes the other columns from the row that has it (https://sqlite.org/lang_select.html#bareagg).
  [180_000, 1_200_000, 7_200_000, 43_200_000]
    .map(
      (stepMs) => `
  INSERT OR IGNORE INTO samples
      (step_ms, bucket_ms, device_id, at_ms, total_bytes, used_bytes, free_bytes, gtt_used_bytes, tenants)
    SELECT ${stepMs}, bucket, device_id, at_ms, total_bytes, used_bytes, free_bytes, gtt_used_bytes, tenants
    FROM (SELECT *, bucket_ms / ${stepMs} * ${stepMs} AS bucket, max(coalesce(used_bytes, -1)) FROM samples
      WHERE step_ms = 60000 GROUP BY bucket_ms / ${stepMs}, device_id);`,
    )
    .join(''),
  // How long a server says that it generated: of an answer that comes as a whole the times of its bytes say nothing.
  `
  ALTER TABLE requests ADD COLUMN generated_ms REAL;
  `,
];
