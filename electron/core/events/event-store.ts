import type { Result } from '../../../shared/errors.ts';
import type { LandlordEvent, NewEvent } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';

/** One downsampled reading for the history chart: bytes by tenant on one device. */
export interface StoredSample {
  readonly atMs: number;
  readonly deviceId: string;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
  readonly gttUsedBytes: number | null;
  /** Tenant id → bytes. */
  readonly tenants: Readonly<Record<string, number | null>>;
  /** Ids of models that were used since the reading before; absent: not recorded. */
  readonly used?: readonly string[];
}

/**
 * Events, samples and small durable facts in SQLite (`landlord.db`, WAL), written by a worker so
 * that the main thread never blocks. When the disk is full or the file is broken the store says so
 * once, keeps the newest events in memory and goes on.
 */
export interface EventStore {
  /** Logs the event and resolves once it is committed; the returned one has its id and time. */
  append(event: NewEvent, epochMs: number): Promise<LandlordEvent>;
  query(query: EventQuery): Promise<Result<readonly LandlordEvent[]>>;
  addSamples(samples: readonly StoredSample[]): void;
  /** Small durable facts: pins, sleep, learned footprints. JSON values. */
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<Result<void>>;
  all(prefix: string): Promise<Readonly<Record<string, unknown>>>;
  /** Why writes do not reach the disk; null when they do. */
  trouble(): string | null;
  close(): Promise<void>;
}
