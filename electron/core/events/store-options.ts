import type { NewEvent } from '../../../shared/events.ts';
import { DEFAULT_RETENTION } from './retention.ts';
import type { Retention } from './store-protocol.ts';

export interface StoreOptions {
  readonly file: string;
  readonly now: () => number;
  /** One `storage_failed` a spell of trouble, and one when a damaged file was put aside. Log it through the store. */
  readonly onTrouble: (event: NewEvent) => void;
  /**
   * The file opened only after `ready`: here are the facts of earlier runs that were missed until now. What is
   * set in the call is written before any fact of this run.
   */
  readonly onLate?: (facts: ReadonlyMap<string, unknown>) => void;
  readonly maxFileBytes?: number;
  readonly retention?: Retention;
  /** How long `append` and `set` may wait for the disk before they are answered without it. */
  readonly answerMs?: number;
  /** A disk that is silent for this long is told as trouble; a busy one may take seconds. */
  readonly silentMs?: number;
  /** How long the first opening may take before questions are answered without the file. */
  readonly openMs?: number;
  /** First pause before a new try; each further one doubles, up to 16 times this. */
  readonly retryMs?: number;
  readonly pruneEveryMs?: number;
  readonly workerUrl?: URL;
}

export const DEFAULTS = {
  // A year's 200,000 events take some 100 MB and a month's samples of four cards as much.
  maxFileBytes: 512 * 2 ** 20,
  retention: DEFAULT_RETENTION,
  answerMs: 2000,
  silentMs: 15_000,
  openMs: 5000,
  retryMs: 1000,
  pruneEveryMs: 600_000,
  workerUrl: new URL('./store-worker.ts', import.meta.url),
};
