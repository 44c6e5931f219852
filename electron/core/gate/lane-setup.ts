import { randomBytes } from 'node:crypto';
import { renameSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { makeFolders } from '../make-folders.ts';
import { laneFiles } from './lane-files.ts';
import { type LaneMeaning, meaningText } from './means.ts';
import { readSmallFile } from './small-file.ts';
import { writeNew } from './write-new.ts';

/**
 * What every process must agree on, written where every process looks: how wide a lane is, and which
 * lanes a port means. Written aside and renamed, and not at all where it already says so.
 */
export interface LaneSetup {
  /** `127.0.0.1_8080`. */
  readonly name: string;
  /** 1 removes the file; null leaves it as it is. */
  readonly width: number | null;
  /** null removes the file: the port is its own lane. */
  readonly means: LaneMeaning | null;
}

/** Errors: `storage_failed`. */
export function setUpLane(root: string, setup: LaneSetup, shared: boolean): Result<void> {
  const files = laneFiles(root, setup.name);
  try {
    if (setup.width !== null) ensureText(files.width, setup.width === 1 ? null : `${setup.width}\n`, shared);
    ensureText(files.means, setup.means === null ? null : meaningText(setup.means), shared);
    return ok(undefined);
  } catch (thrown) {
    return fail(
      'storage_failed',
      `The lane ${setup.name} can't be set up in ${root} (${troubleOf(thrown)}); turns take it one at a time.`,
    );
  }
}

/** Without the path, which has a random part: one trouble is one sentence, however often it is met. */
function troubleOf(thrown: unknown): string {
  return messageOf(thrown).replace(/, \w+ '.*'$/su, '');
}

function ensureText(path: string, text: string | null, shared: boolean): void {
  const present = readSmallFile(path);
  if (present.kind === 'read' ? present.text === text : present.kind === 'absent' && text === null) return;
  if (text === null) {
    unlinkSync(path);
    return;
  }
  makeFolders(dirname(path), 0o700);
  const aside = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    writeNew(aside, text, shared ? 0o644 : 0o600);
    renameSync(aside, path);
  } catch (thrown) {
    try {
      unlinkSync(aside);
    } catch {
      // It was never made.
    }
    throw thrown;
  }
}
