import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';

const CHUNK_BYTES = 4 << 20;
const WAIT_MS = 20;
/** Pages read into memory that is short push others out, perhaps those of the model that decodes. */
const SPARE_BYTES = 512 << 20;

/** Reads a file into the page cache while `isIdle`: reading beside a decode costs it up to a third of its speed. */
export async function readAhead(
  path: string,
  isIdle: () => boolean,
  signal: AbortSignal,
): Promise<Result<number>> {
  const file = await open(path, 'r').catch((thrown: unknown) => messageOf(thrown));
  if (typeof file === 'string') return fail('bad_model_file', `${path} can't be read (${file}).`);
  try {
    const { size } = await file.stat();
    if (size + SPARE_BYTES > process.availableMemory()) return ok(0);
    const chunk = Buffer.allocUnsafe(Math.min(size, CHUNK_BYTES));
    let at = 0;
    while (at < size) {
      if (signal.aborted) return fail('cancelled', 'Reading ahead was cancelled.', { readBytes: at });
      if (!isIdle()) {
        await sleep(WAIT_MS);
        continue;
      }
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) break;
      at += bytesRead;
    }
    return ok(at);
  } finally {
    await file.close();
  }
}
