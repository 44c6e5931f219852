import { messageOf } from '../../../shared/errors.ts';
import type { StoreFailure } from './store-protocol.ts';

/** Primary result codes of https://sqlite.org/rescode.html; the extended ones keep them in the low byte. */
const CODES: Readonly<Record<number, string>> = {
  5: 'another program keeps its database locked',
  8: 'its database may not be written (a read-only file, folder or disk)',
  10: 'the disk reports an error',
  11: 'its database is damaged',
  13: 'the disk is full',
  14: 'its database can not be opened (look at the folder and its permissions)',
  26: 'its file is not a database',
};

const DAMAGED: ReadonlySet<number> = new Set([11, 26]);

/** Thrown by our own code for what SQLite has no code for. */
export class StoreProblem extends Error {}

export function failureOf(thrown: unknown): StoreFailure {
  if (thrown instanceof StoreProblem) return { damaged: false, why: thrown.message };
  const extended = thrown instanceof Error && 'errcode' in thrown ? thrown.errcode : null;
  if (typeof extended !== 'number') return { damaged: false, why: `of: ${messageOf(thrown)}` };
  const code = extended & 0xff;
  return {
    damaged: DAMAGED.has(code),
    why: CODES[code] ?? `SQLite says: ${messageOf(thrown)} (${extended})`,
  };
}
