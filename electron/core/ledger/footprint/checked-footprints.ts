import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Footprint } from './estimate.ts';
import { type FootprintSource, loadKey } from './footprint-source.ts';
import type { LoadRequest } from './load-request.ts';
import { isFootprint } from './reference-source.ts';

/** What was checked before, over restarts. */
export interface CheckedStore {
  load(): Promise<unknown>;
  save(value: readonly Kept[]): void;
}

interface Kept {
  readonly key: string;
  readonly footprint: Footprint;
}

export interface CheckedOptions {
  readonly ours: FootprintSource;
  readonly reference: FootprintSource;
  readonly store: CheckedStore;
  /** Of this program: what another version has computed is not kept. */
  readonly version: string;
  /** A better answer than the one that was given has come. */
  readonly onBetter: (request: LoadRequest) => void;
  /** A program that starts, or a load that begins, has first call on the processor. Default 5 s. */
  readonly afterMs?: number;
}

/** The newest are kept; each is about a kilobyte. */
const KEEP = 200;
const AFTER_MS = 5_000;

/**
 * Ours at once, and in the background llama.cpp's own: where that comes, and differs, `onBetter` is called
 * with the load it is for, and from then on it is the answer to that load, until a file of it changes.
 */
export async function checkedFootprints(options: CheckedOptions): Promise<FootprintSource> {
  const { ours, reference, store, onBetter, afterMs = AFTER_MS } = options;
  const kept = new Map((await readKept(store)).map((one) => [one.key, one.footprint]));
  /** Being asked, or refused: llama.cpp can not open it or is not here, and is not asked again. */
  const asked = new Set<string>();
  const keyOf = async (request: LoadRequest): Promise<string | null> => {
    const key = await loadKey(request);
    if (key === null) return null;
    return createHash('sha256').update(options.version).update(key).digest('base64url');
  };
  const check = async (request: LoadRequest, key: string, footprint: Footprint): Promise<void> => {
    if (asked.has(key)) return;
    asked.add(key);
    await sleep(afterMs, undefined, { ref: false });
    const answer = await reference.footprintOf(request);
    // The file may have been replaced while it was read.
    if (!answer.ok || (await keyOf(request)) !== key) return;
    asked.delete(key);
    kept.set(key, answer.value);
    for (const oldest of kept.keys()) {
      if (kept.size <= KEEP) break;
      kept.delete(oldest);
    }
    store.save([...kept].map(([one, value]) => ({ key: one, footprint: value })));
    if (answer.value.totalBytes !== footprint.totalBytes) onBetter(request);
  };
  return {
    async footprintOf(request) {
      const key = await keyOf(request);
      const before = key === null ? undefined : kept.get(key);
      if (before !== undefined) return { ok: true, value: before };
      const answer = await ours.footprintOf(request);
      if (answer.ok && key !== null) void check(request, key, answer.value);
      return answer;
    },
  };
}

async function readKept(store: CheckedStore): Promise<readonly Kept[]> {
  const value = await store.load();
  if (!Array.isArray(value)) return [];
  return value.filter(
    (one: unknown): one is Kept =>
      typeof one === 'object' &&
      one !== null &&
      'key' in one &&
      typeof one.key === 'string' &&
      'footprint' in one &&
      isFootprint(one.footprint),
  );
}
