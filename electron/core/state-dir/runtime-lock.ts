import type { FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { replaceFile } from './atomic-file.ts';
import { isSameFile, takeLockFile } from './lock-file.ts';
import type { LandlordPaths } from './paths.ts';
import {
  isRecordAlive,
  RUNTIME_RECORD_SCHEMA,
  type RuntimeRecord,
  readRuntimeRecord,
  readStartTime,
} from './runtime-record.ts';

/** How long a loser waits for the winner's record, which is written just after its lock. */
const RECORD_WAIT_MS = 1000;
const RECORD_POLL_MS = 25;

/** What the record says of this process. */
export interface RuntimeSelf {
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
}

export interface RuntimeLock {
  /** Whether the file that is locked still has its name; others would lock another one. */
  isThere(): Promise<boolean>;
  /** Writes the URL beside the lock, so that the CLI finds it. Errors: `storage_failed`. */
  publish(url: string): Promise<Result<void>>;
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * One runtime per user, proven by a lock that ends with its process, however that ends.
 * The lock's file and the record beside it are never deleted: a record whose lock is free means nothing.
 *
 * Errors: `already_running` naming pid and URL; `storage_failed`; `not_supported`.
 */
export async function acquireRuntimeLock(
  paths: Pick<LandlordPaths, 'lockFile' | 'runtimeFile'>,
  self: RuntimeSelf,
): Promise<Result<RuntimeLock>> {
  const taken = await takeLockFile(paths.lockFile);
  if (!taken.ok) return taken;
  if (!taken.value.taken) return alreadyRunning(paths.runtimeFile);

  const held = new HeldLock(taken.value.file, paths, {
    schema: RUNTIME_RECORD_SCHEMA,
    pid: self.pid,
    startTimeTicks: await readStartTime(self.pid),
    url: null,
    startedAt: self.startedAt,
    version: self.version,
  });
  const written = await held.write(null);
  if (!written.ok) {
    await held.release();
    return written;
  }
  return ok(held);
}

/** Keeps held locks reachable: a file handle that is garbage-collected is closed, and its lock with it. */
const heldLocks = new Set<HeldLock>();

class HeldLock implements RuntimeLock {
  readonly #file: FileHandle;
  readonly #lockFile: string;
  readonly #runtimeFile: string;
  readonly #record: RuntimeRecord;
  #released = false;

  constructor(
    file: FileHandle,
    { lockFile, runtimeFile }: Pick<LandlordPaths, 'lockFile' | 'runtimeFile'>,
    record: RuntimeRecord,
  ) {
    this.#file = file;
    this.#lockFile = lockFile;
    this.#runtimeFile = runtimeFile;
    this.#record = record;
    heldLocks.add(this);
  }

  async isThere(): Promise<boolean> {
    try {
      return await isSameFile(this.#file, this.#lockFile);
    } catch {
      // A disk that does not answer is no folder that is gone.
      return true;
    }
  }

  publish(url: string): Promise<Result<void>> {
    return this.write(url);
  }

  async write(url: string | null): Promise<Result<void>> {
    try {
      await replaceFile(this.#runtimeFile, `${JSON.stringify({ ...this.#record, url })}\n`, 0o600);
      return ok(undefined);
    } catch (error) {
      return fail(
        'storage_failed',
        `${this.#runtimeFile} can't be written (${messageOf(error)}), so no command would find this runtime; ` +
          'make room or make its folder writable.',
      );
    }
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    heldLocks.delete(this);
    await this.#file.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

async function alreadyRunning(runtimeFile: string): Promise<Result<never>> {
  let record: RuntimeRecord | null = null;
  for (let waitedMs = 0; waitedMs <= RECORD_WAIT_MS; waitedMs += RECORD_POLL_MS) {
    const read = await readRuntimeRecord(runtimeFile);
    // The record of a runtime that was killed may still lie there while the new one writes its own.
    record = read !== null && (await isRecordAlive(read)) !== false ? read : null;
    if (record !== null && record.url !== null) break;
    // The winner is known but does not listen yet: a moment more may bring its URL.
    await delay(RECORD_POLL_MS);
  }
  if (record === null) {
    return fail(
      'already_running',
      'Another VRAM Landlord of this user is starting; wait a moment, then run `landlord status`.',
      { pid: null },
    );
  }
  const where = record.url === null ? 'it does not listen yet' : record.url;
  return fail(
    'already_running',
    `VRAM Landlord already runs for this user: pid ${record.pid}, ${where}. ` +
      'Use that one, stop it first, or give this one its own --state-dir.',
    { pid: record.pid },
  );
}
