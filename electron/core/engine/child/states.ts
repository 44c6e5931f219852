import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { StateRecord } from '../engine-host.ts';
import { mismatch } from '../state-match.ts';
import type { HeldContext } from './contexts.ts';

const CHUNK_BYTES = 1 << 20;

interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/** What a file was when it was summed up. */
interface Seal extends Digest {
  readonly inode: number;
}

/**
 * Files in memory that this process has summed up itself. Their time of change is set to a moment long
 * ago just before, so that any writing since shows in it: what is still as sealed need not be read twice,
 * which is half of what a return costs. Files on a disk may rot without a writing, and are read.
 */
const sealed = new Map<string, Seal>();
const SEALED_AT_S = 1;
/** statfs(2), TMPFS_MAGIC. */
const TMPFS = 0x01021994;
const MOST_SEALS = 256;

/** Writes a context's state beside `path`, syncs it, and gives it the name only then: a file of that name is whole. */
export async function saveState(held: HeldContext, path: string): Promise<Result<StateRecord>> {
  const partial = `${path}.partial`;
  try {
    await rm(partial, { force: true });
    // What was said is nobody else's to read; llama.cpp writes into the file that is there.
    await (await open(partial, 'wx', 0o600)).close();
    const { fileSize } = await held.sequence.saveStateToFile(partial);
    const { inode, ...digest } = await sealOf(partial);
    if (digest.bytes !== fileSize || fileSize === 0) {
      throw new Error(`${digest.bytes} of ${fileSize} bytes were written`);
    }
    await rename(partial, path);
    await syncFolder(dirname(path));
    await remember(path, { inode, ...digest });
    return ok({
      path,
      ...digest,
      fingerprint: held.model.facts.fingerprint,
      tokens: held.sequence.contextTokens.map(Number),
      pendingToken: held.pendingToken,
      ...held.shape,
    });
  } catch (thrown) {
    await rm(partial, { force: true }).catch(() => undefined);
    return fail(
      'storage_failed',
      `The state of a conversation could not be written to ${path} (${messageOf(thrown)}). Free some space there.`,
    );
  }
}

/** Loads a state after it was checked: llama.cpp aborts on a cut file and takes flipped bits at their word. */
export async function restoreState(
  held: HeldContext,
  record: StateRecord,
  remake: () => Promise<Result<null>>,
): Promise<Result<null>> {
  const why = mismatch(record, { fingerprint: held.model.facts.fingerprint, ...held.shape });
  if (why !== null) return fail('state_mismatch', `The saved state does not belong here: ${why}.`);
  let digest: Digest;
  try {
    digest = (await unchanged(record.path)) ?? (await digestOf(record.path));
  } catch (thrown) {
    return fail('state_damaged', `The saved state can't be read (${messageOf(thrown)}).`);
  }
  if (digest.bytes !== record.bytes) {
    return fail('state_damaged', 'The saved state is not whole.', {
      bytes: digest.bytes,
      recordedBytes: record.bytes,
    });
  }
  if (digest.sha256 !== record.sha256) {
    return fail('state_damaged', 'The saved state was changed since it was written.', {
      bytes: digest.bytes,
    });
  }
  try {
    await held.sequence.loadStateFromFile(record.path, { acceptRisk: true });
    const loaded = held.sequence.contextTokens;
    if (loaded.length !== record.tokens.length || loaded.some((token, at) => token !== record.tokens[at])) {
      throw new Error('it holds other tokens than were written');
    }
  } catch (thrown) {
    const remade = await remake();
    if (!remade.ok) return remade;
    return fail(
      'internal',
      `The saved state could not be loaded (${messageOf(thrown)}); the context is empty now.`,
    );
  }
  held.pendingToken = record.pendingToken;
  return ok(null);
}

/** Sums a new file up and has it on the disk. */
async function sealOf(path: string): Promise<Seal> {
  const file = await open(path, 'r');
  try {
    await file.utimes(SEALED_AT_S, SEALED_AT_S);
    const digest = await summedUp(file);
    await file.sync();
    return { ...digest, inode: (await file.stat()).ino };
  } finally {
    await file.close();
  }
}

async function remember(path: string, seal: Seal): Promise<void> {
  if ((await statfs(path)).type !== TMPFS) return;
  sealed.delete(path);
  sealed.set(path, seal);
  const [oldest] = sealed.keys();
  if (sealed.size > MOST_SEALS && oldest !== undefined) sealed.delete(oldest);
}

/** null: it has to be read to know. */
async function unchanged(path: string): Promise<Digest | null> {
  const seal = sealed.get(path);
  if (seal === undefined) return null;
  const file = await stat(path);
  const isSame = file.ino === seal.inode && file.size === seal.bytes && file.mtimeMs === SEALED_AT_S * 1000;
  return isSame ? seal : null;
}

async function digestOf(path: string): Promise<Digest> {
  const file = await open(path, 'r');
  try {
    return await summedUp(file);
  } finally {
    await file.close();
  }
}

async function summedUp(file: FileHandle): Promise<Digest> {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  while (true) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, bytes);
    if (bytesRead === 0) break;
    hash.update(chunk.subarray(0, bytesRead));
    bytes += bytesRead;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** So that the name survives a power cut too; not every file system lets a folder be opened. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  if (folder === null) return;
  try {
    await folder.sync().catch(() => undefined);
  } finally {
    await folder.close();
  }
}
