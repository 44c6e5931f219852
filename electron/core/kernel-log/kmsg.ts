import { closeSync, constants, openSync, readSync } from 'node:fs';
import { kmsgMessage } from './trouble.ts';

export interface KmsgReader {
  stop(): void;
}

/** Trouble of a driver is told to a person; a look at a log with nothing new costs 0.2 ms, as errors do in Node. */
const EVERY_MS = 3_000;
/** The kernel gives one record a read, and keeps some ten thousand: so many before others have their turn. */
const RECORDS_AT_ONCE = 256;
/** A record with its continuation lines (Documentation/ABI/testing/dev-kmsg). */
const RECORD_BYTES = 8192;

/**
 * Follows /dev/kmsg from now on without waiting in a read, so that no thread and no process has to: nothing
 * outlives us. What is there already is passed over by reading it: its times are of a clock that stands
 * still in a suspend and that nobody else sets. null: this user may not read it.
 */
export function followKmsg(path: string, onMessage: (message: string) => void): KmsgReader | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  const buffer = Buffer.alloc(RECORD_BYTES);
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;
  let isOld = true;
  const later = (inMs: number): void => {
    timer = setTimeout(look, inMs);
    timer.unref();
  };
  const look = (): void => {
    for (let record = 0; record < RECORDS_AT_ONCE && !isStopped; record += 1) {
      const bytes = readNow(file, buffer);
      if (bytes === 'gone') return;
      if (bytes === 'nothing') {
        isOld = false;
        later(EVERY_MS);
        return;
      }
      if (isOld) continue;
      for (const line of buffer.toString('utf8', 0, bytes).split('\n')) {
        const message = kmsgMessage(line);
        if (message !== null) onMessage(message);
      }
    }
    if (!isStopped) later(0);
  };
  look();
  return {
    stop() {
      if (isStopped) return;
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      closeSync(file);
    },
  };
}

function readNow(file: number, buffer: Buffer): number | 'nothing' | 'gone' {
  try {
    return readSync(file, buffer, 0, buffer.length, null) || 'nothing';
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : '';
    // EPIPE: records that were not read yet have been overwritten; the next one is there.
    if (code === 'EPIPE') return 0;
    return code === 'EAGAIN' ? 'nothing' : 'gone';
  }
}
