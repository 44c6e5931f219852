import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { errnoOf } from '../errno.ts';
import { ownPid, startTimeOf } from './process-start.ts';
import { randomHex } from './random-hex.ts';
import { readSmallFile } from './small-file.ts';
import { writeNew } from './write-new.ts';

export const SIDECAR_SCHEMA = 'vram-landlord/gate/1';

export type TurnClass = 'interactive' | 'batch';

/**
 * Who says to hold a slot. Written after the lock is taken and removed before it is freed; one of a
 * killed holder stays. It is never trusted over the kernel, so read it only beside what the kernel
 * says (`inspect.ts`).
 */
export interface Sidecar {
  readonly schema: typeof SIDECAR_SCHEMA;
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat; null where there is no /proc. */
  readonly startTime: number | null;
  readonly session: string | null;
  readonly model: string | null;
  readonly class: TurnClass | null;
  readonly turn: string | null;
  /** ISO 8601. */
  readonly acquiredAt: string;
}

/** absent: no file, nobody wrote one. garbage: a file of another shape. */
export type SidecarRead =
  | { readonly kind: 'read'; readonly sidecar: Sidecar }
  | { readonly kind: 'absent' }
  | { readonly kind: 'garbage' };

/** Longer ones are no session's name, and would only fill a disk. */
const LONGEST_TEXT = 512;

export function sidecarOf(
  about: Pick<Sidecar, 'session' | 'model' | 'class' | 'turn'>,
  epochMs: number,
): Sidecar {
  return {
    schema: SIDECAR_SCHEMA,
    pid: ownPid(),
    startTime: startTimeOf(ownPid()),
    session: shorten(about.session),
    model: shorten(about.model),
    class: about.class,
    turn: about.turn,
    acquiredAt: new Date(epochMs).toISOString(),
  };
}

function shorten(text: string | null): string | null {
  return text === null ? null : text.slice(0, LONGEST_TEXT);
}

/** Another program's sidecar may lack the fields it has nothing to say on; a pid it must have. */
export function parseSidecar(text: string): Sidecar | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const { schema, pid, startTime, acquiredAt } = fields;
  if (schema !== SIDECAR_SCHEMA) return null;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  if (typeof acquiredAt !== 'string' || Number.isNaN(Date.parse(acquiredAt))) return null;
  const optional = (field: unknown): string | null => (typeof field === 'string' ? shorten(field) : null);
  return {
    schema: SIDECAR_SCHEMA,
    pid,
    startTime: typeof startTime === 'number' && Number.isSafeInteger(startTime) ? startTime : null,
    session: optional(fields.session),
    model: optional(fields.model),
    class: fields.class === 'interactive' || fields.class === 'batch' ? fields.class : null,
    turn: optional(fields.turn),
    acquiredAt,
  };
}

export function readSidecar(path: string): SidecarRead {
  const read = readSmallFile(path);
  if (read.kind === 'absent') return { kind: 'absent' };
  // Emptied where it could not be removed.
  if (read.kind === 'read' && read.text === '') return { kind: 'absent' };
  const sidecar = read.kind === 'read' ? parseSidecar(read.text) : null;
  return sidecar === null ? { kind: 'garbage' } : { kind: 'read', sidecar };
}

let drawn: string | null = null;
let count = 0;

/** Unlike any other's, also of a process of the same pid in a container that shares the root. */
function asideName(): string {
  drawn ??= randomHex(6);
  count += 1;
  return `${drawn}${count}`;
}

/**
 * Written aside and renamed, so that a reader sees a whole one. The old one is removed first: ext4
 * writes data out at once when a rename replaces a file (auto_da_alloc, ext4(5)), which made this 4
 * times slower (measured: 216 µs against 57), and an old turn's name is worth nothing. No fsync, for a
 * sidecar that outlives its boot says nothing either. Throws what the file system throws.
 */
export function writeSidecar(path: string, sidecar: Sidecar, mode: number): void {
  const text = `${JSON.stringify(sidecar)}\n`;
  const aside = `${path}.${asideName()}.tmp`;
  try {
    writeNew(aside, text, mode);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) removeQuietly(path);
    renameSync(aside, path);
  } catch (thrown) {
    removeQuietly(aside);
    // In a folder like /tmp nobody may rename over another user's file, but its text may be replaced.
    if (isRefusal(thrown) && overwrite(path, text, mode)) return;
    removeQuietly(path);
    throw thrown;
  }
}

/**
 * Takes a sidecar away, or empties it where the folder is like /tmp and it is another user's file.
 * False: neither can be done, and it still says what it said.
 */
export function removeSidecar(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (thrown) {
    return errnoOf(thrown) === 'ENOENT' || (isRefusal(thrown) && overwrite(path, '', null));
  }
}

function isRefusal(thrown: unknown): boolean {
  return ['EPERM', 'EACCES'].includes(errnoOf(thrown) ?? '');
}

/** `mode` null: as it is. */
function overwrite(path: string, text: string, mode: number | null): boolean {
  let fd: number;
  try {
    // Without O_CREAT: fs.protected_regular refuses that on another user's file in such a folder.
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
    fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  try {
    if (!fstatSync(fd).isFile()) return false;
    ftruncateSync(fd, text === '' ? 0 : writeSync(fd, text, 0));
    return true;
  } catch {
    return false;
  } finally {
    if (mode !== null) makeMode(fd, mode);
    closeSync(fd);
  }
}

function makeMode(fd: number, mode: number): void {
  try {
    fchmodSync(fd, mode);
  } catch {
    // Another user's file: it has its mode from them.
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Not there, or not ours to remove.
  }
}
