import { existsSync, readdirSync, renameSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Damaged databases that are kept for whoever wants to look; the newest of them stay. */
const KEPT_DAMAGED = 3;

/**
 * Renames a damaged database, its write-ahead log with it, to `<file>.corrupt-<UTC time>`, so that a
 * fresh one can take its place. Nothing is deleted but what is older than the newest few.
 */
export function putAsideDamaged(file: string, epochMs: number): string {
  const prefix = `${basename(file)}.corrupt-`;
  const stamp = new Date(epochMs).toISOString().replace(/[-:]|\.\d+/g, '');
  let aside = join(dirname(file), `${prefix}${stamp}`);
  for (let count = 1; existsSync(aside); count += 1)
    aside = join(dirname(file), `${prefix}${stamp}.${count}`);
  renameSync(file, aside);
  for (const suffix of ['-wal', '-shm']) {
    if (existsSync(`${file}${suffix}`)) renameSync(`${file}${suffix}`, `${aside}${suffix}`);
  }
  const kept = readdirSync(dirname(file))
    .filter(
      (name) => name.startsWith(prefix) && !/-(wal|shm)$/.test(name) && join(dirname(file), name) !== aside,
    )
    .sort();
  for (const name of kept.slice(0, Math.max(0, kept.length - KEPT_DAMAGED + 1))) {
    for (const suffix of ['', '-wal', '-shm']) {
      if (existsSync(join(dirname(file), `${name}${suffix}`)))
        unlinkSync(join(dirname(file), `${name}${suffix}`));
    }
  }
  return aside;
}

/** The facts that can still be read from a damaged file: pins must not be lost with a broken log. */
export function salvageFacts(file: string): readonly (readonly [string, string])[] {
  const facts: (readonly [string, string])[] = [];
  try {
    const database = new DatabaseSync(file);
    try {
      for (const row of database.prepare('SELECT key, value FROM facts').iterate()) {
        if (typeof row.key === 'string' && typeof row.value === 'string') facts.push([row.key, row.value]);
      }
    } finally {
      database.close();
    }
  } catch {
    // What was read before the damage is all there is.
  }
  return facts;
}
