import type { StoredSample } from './event-store.ts';
import type { SampleQuery } from './store-protocol.ts';

/** Readings come every half second; this is how often one of them is kept. */
export const BUCKET_MS = 10_000;

/** The fullest reading so far of each device's present 10 s, by device. */
export type OpenBuckets = ReadonlyMap<string, StoredSample>;

/**
 * Takes readings in; gives out those of buckets that are over. The fullest reading stands for its
 * bucket: a floor is sized on peaks, and an average would hide them.
 */
export function downsample(
  open: OpenBuckets,
  samples: readonly StoredSample[],
): { readonly open: OpenBuckets; readonly closed: readonly StoredSample[] } {
  const next = new Map(open);
  const closed: StoredSample[] = [];
  for (const sample of samples) {
    const held = next.get(sample.deviceId);
    if (held === undefined) {
      next.set(sample.deviceId, sample);
    } else if (bucketOf(held.atMs, BUCKET_MS) !== bucketOf(sample.atMs, BUCKET_MS)) {
      closed.push(held);
      next.set(sample.deviceId, sample);
    } else {
      const used = [...new Set([...(held.used ?? []), ...(sample.used ?? [])])];
      const fuller = isFuller(sample, held) ? sample : held;
      next.set(sample.deviceId, used.length === 0 ? fuller : { ...fuller, used });
    }
  }
  return { open: next, closed };
}

export function bucketOf(atMs: number, stepMs: number): number {
  return Math.floor(atMs / stepMs) * stepMs;
}

/** A known reading says more than an unknown one. */
function isFuller(sample: StoredSample, held: StoredSample): boolean {
  return sample.usedBytes !== null && (held.usedBytes === null || sample.usedBytes > held.usedBytes);
}

export function isAskedFor(sample: StoredSample, { sinceMs, untilMs, deviceId }: SampleQuery): boolean {
  const { atMs } = sample;
  return (
    atMs >= sinceMs && atMs <= (untilMs ?? atMs) && (deviceId === undefined || sample.deviceId === deviceId)
  );
}
