import type { Result } from '../../../shared/errors.ts';
import type { LandlordEvent } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';
import type { StoredSample } from './event-store.ts';
import type { RequestRecord } from './request-record.ts';
import type { RequestQuery } from './request-rows.ts';

/** What the store asks of the worker that owns the database, one answer each, in order. */
export type StoreRequest =
  /** Closes what is open first. `damaged`: the file was found corrupt while in use. */
  | {
      readonly type: 'open';
      readonly options: DatabaseOptions;
      readonly nowMs: number;
      readonly damaged: boolean;
    }
  | { readonly type: 'append'; readonly events: readonly EventRow[] }
  | { readonly type: 'query'; readonly query: EventQuery }
  | { readonly type: 'addSamples'; readonly samples: readonly StoredSample[] }
  | { readonly type: 'querySamples'; readonly query: SampleQuery }
  | { readonly type: 'addRequests'; readonly records: readonly RequestRecord[] }
  | { readonly type: 'queryRequests'; readonly query: RequestQuery }
  /** A null value removes the fact. */
  | { readonly type: 'setFacts'; readonly facts: readonly (readonly [string, string | null])[] }
  | { readonly type: 'prune'; readonly nowMs: number }
  | { readonly type: 'close' };

export interface StoreAnswers {
  readonly open: Opened;
  /** The ids the events have now: the ones they came with, unless those were taken. */
  readonly append: readonly number[];
  readonly query: readonly LandlordEvent[];
  readonly addSamples: null;
  readonly querySamples: readonly StoredSample[];
  readonly addRequests: null;
  readonly queryRequests: readonly RequestRecord[];
  readonly setFacts: null;
  /** Whether there is more to prune. */
  readonly prune: boolean;
  readonly close: null;
}

export interface DatabaseOptions {
  readonly file: string;
  /** The file grows no larger; a full one is told like a full disk. */
  readonly maxFileBytes: number;
  readonly retention: Retention;
}

export interface Retention {
  readonly eventMaxAgeMs: number;
  readonly eventMaxRows: number;
}

export interface EventRow {
  readonly id: number;
  readonly atMs: number;
  readonly kind: string;
  readonly reason: string;
  readonly model: string | null;
  readonly backend: string | null;
  readonly session: string | null;
  readonly deviceId: string | null;
  /** JSON. */
  readonly numbers: string;
}

export interface SampleQuery {
  /** Epoch ms, inclusive. */
  readonly sinceMs: number;
  readonly untilMs?: number;
  readonly deviceId?: string;
  /** One reading, the fullest, for each so many milliseconds; absent: every row. */
  readonly stepMs?: number;
}

export interface Opened {
  /** The highest id ever given out; 0 for a fresh database. */
  readonly lastId: number;
  readonly facts: readonly (readonly [string, string])[];
  /** Where a damaged file was put aside; null when it was sound. */
  readonly putAside: string | null;
}

/** Why a request failed. `damaged`: the file is not a sound database; putting it aside helps. */
export interface StoreFailure {
  readonly damaged: boolean;
  /** A clause to follow `because`. */
  readonly why: string;
}

export type StoreResult<T> = Result<T, StoreFailure>;

export interface RequestMessage {
  readonly sequence: number;
  readonly request: StoreRequest;
}

export interface AnswerMessage {
  readonly sequence: number;
  readonly result: StoreResult<StoreAnswers[keyof StoreAnswers]>;
}
