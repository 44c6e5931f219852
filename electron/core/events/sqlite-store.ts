import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { LandlordEvent, NewEvent } from '../../../shared/events.ts';
import type { EventQuery } from '../runtime-api.ts';
import { downsample, isAskedFor, type OpenBuckets } from './downsample.ts';
import { limitOf, matches, toEvent, toRow } from './event-rows.ts';
import type { EventStore, StoredSample } from './event-store.ts';
import { parseFact } from './fact.ts';
import { PendingEvents } from './pending-events.ts';
import type { RequestRecord } from './request-record.ts';
import type { RequestQuery } from './request-rows.ts';
import { StoreLink } from './store-link.ts';
import { DEFAULTS, type StoreOptions } from './store-options.ts';
import type {
  Opened,
  SampleQuery,
  StoreAnswers,
  StoreFailure,
  StoreRequest,
  StoreResult,
} from './store-protocol.ts';
import { within } from './within.ts';

const BATCH_EVENTS = 500;
const SAMPLES_MAX = 2000;
const RETRY_DOUBLINGS = 4;

/**
 * The event store over a worker that owns `landlord.db`.
 *
 *   opening ─► open ⇄ failing       failing: nothing reaches the disk; tried again, ever less often
 *      any ─► closed
 *
 * Ids are given out here, in the order of `append`, so that an event that could not be written keeps
 * its id when it is at last. Nothing of it throws.
 */
export class SqliteStore implements EventStore {
  readonly #options: StoreOptions & typeof DEFAULTS;
  readonly #pending = new PendingEvents();
  readonly #facts = new Map<string, string>();
  /** Keys whose value on disk is an older one. */
  readonly #unsavedFacts = new Set<string>();
  #buckets: OpenBuckets = new Map();
  #samples: readonly StoredSample[] = [];
  #link: StoreLink | null = null;
  #state: 'opening' | 'open' | 'failing' | 'closed' = 'opening';
  #trouble: string | null = null;
  #damaged = false;
  #tries = 0;
  #lastId: number | null = null;
  /** `ready` has resolved: whoever asks for a fact is answered with what is known. */
  #isReady = false;
  #wasOpen = false;
  #writing = false;
  #flushQueued = false;
  #retryTimer: NodeJS.Timeout | null = null;
  readonly #pruneTimer: NodeJS.Timeout;
  readonly #ready: Promise<void>;

  constructor(options: StoreOptions) {
    this.#options = { ...DEFAULTS, ...options };
    this.#ready = within(this.#open(), this.#options.openMs, 'late').then((outcome) => {
      this.#isReady = true;
      if (outcome === 'late') this.#begin(this.#silence(this.#options.openMs));
    });
    this.#pruneTimer = setInterval(() => void this.#prune(), this.#options.pruneEveryMs);
    this.#pruneTimer.unref();
  }

  /** Once the file is open, or known not to open; until then `get` waits too. */
  ready(): Promise<void> {
    return this.#ready;
  }

  trouble(): string | null {
    return this.#trouble;
  }

  async append(event: NewEvent, epochMs: number): Promise<LandlordEvent> {
    if (this.#lastId === null) await this.#ready;
    const stored = toEvent(this.#nextId(), event, epochMs);
    const committed = this.#pending.add(stored);
    if (this.#state === 'open') this.#queueFlush();
    else this.#pending.letGo();
    return committed;
  }

  async query(query: EventQuery): Promise<Result<readonly LandlordEvent[]>> {
    await this.#ready;
    const answer = await this.#ask({ type: 'query', query });
    const fromDisk = answer.ok ? answer.value : [];
    // What is only on its way is not told yet: a kill would take it back, and its number would be another's.
    if (answer.ok && this.#trouble === null) return answer;
    const isThere = (id: number): boolean => fromDisk.some((event) => event.id === id);
    const inMemory = this.#pending.events().filter((event) => matches(event, query) && !isThere(event.id));
    return ok([...fromDisk, ...inMemory].sort((a, b) => a.id - b.id).slice(-limitOf(query)));
  }

  addSamples(samples: readonly StoredSample[]): void {
    if (this.#state === 'closed') return;
    const { open, closed } = downsample(this.#buckets, samples);
    this.#buckets = open;
    if (closed.length === 0) return;
    this.#samples = [...this.#samples, ...closed].slice(-SAMPLES_MAX);
    this.#queueFlush();
  }

  async samples(query: SampleQuery): Promise<Result<readonly StoredSample[]>> {
    await this.#ready;
    const answer = await this.#ask({ type: 'querySamples', query });
    const waiting = [...this.#samples, ...this.#buckets.values()];
    if (answer.ok) return ok([...answer.value, ...waiting.filter((one) => isAskedFor(one, query))]);
    return fail('storage_failed', `The history can't be read because ${answer.error.why}.`);
  }

  async addRequests(records: readonly RequestRecord[]): Promise<boolean> {
    await this.#ready;
    return (await this.#ask({ type: 'addRequests', records })).ok;
  }

  async requests(query: RequestQuery): Promise<Result<readonly RequestRecord[]>> {
    await this.#ready;
    const answer = await this.#ask({ type: 'queryRequests', query });
    return answer.ok ? answer : fail('storage_failed', `Requests can't be read because ${answer.error.why}.`);
  }

  async get(key: string): Promise<unknown> {
    await this.#ready;
    return parseFact(this.#facts.get(key));
  }

  async all(prefix: string): Promise<Readonly<Record<string, unknown>>> {
    await this.#ready;
    return Object.fromEntries(
      [...this.#facts]
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, value]) => [key, parseFact(value)]),
    );
  }

  /** `undefined` removes the fact. A fact that could not be written holds for this run and is tried again. */
  async set(key: string, value: unknown): Promise<Result<void>> {
    let json: string | undefined;
    try {
      json = JSON.stringify(value);
    } catch (error) {
      return fail('bad_input', `The value of ${key} can't be stored (${messageOf(error)}).`);
    }
    if (!this.#isReady) await this.#ready;
    if (json === undefined) this.#facts.delete(key);
    else this.#facts.set(key, json);
    this.#unsavedFacts.add(key);
    const answer = await this.#ask({ type: 'setFacts', facts: [[key, json ?? null]] });
    if (answer.ok) {
      if (this.#facts.get(key) === json) this.#unsavedFacts.delete(key);
      return ok(undefined);
    }
    return fail(
      'storage_failed',
      `It holds until VRAM Landlord ends, but is not stored because ${answer.error.why}; it is tried again.`,
    );
  }

  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    await this.#ready;
    this.#samples = [...this.#samples, ...this.#buckets.values()];
    this.#buckets = new Map();
    // The trouble may be over by now, and there is no later try.
    const last = this.#state === 'failing' ? this.#open() : this.#flush();
    await within(last, this.#options.answerMs, undefined);
    this.#state = 'closed';
    clearInterval(this.#pruneTimer);
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#pending.letGo();
    const link = this.#link;
    this.#link = null;
    if (link === null) return;
    await within(link.request({ type: 'close' }), this.#options.answerMs, null);
    await link.terminate();
  }

  #nextId(): number {
    // Never opened: seconds since 1970 are above any id the file may hold, so these can stay.
    this.#lastId = (this.#lastId ?? Math.floor(this.#options.now() / 1000)) + 1;
    return this.#lastId;
  }

  async #open(): Promise<void> {
    const { file, maxFileBytes, retention, workerUrl } = this.#options;
    if (this.#link === null || this.#link.isGone) {
      try {
        this.#link = new StoreLink(workerUrl);
      } catch (error) {
        this.#failed({ damaged: false, why: `its thread can't start (${messageOf(error)})` });
        return;
      }
    }
    const damaged = this.#damaged;
    const opened = await this.#link.request({
      type: 'open',
      options: { file, maxFileBytes, retention },
      nowMs: this.#options.now(),
      damaged,
    });
    if (this.#state === 'closed') return;
    if (!opened.ok) {
      this.#failed(opened.error);
      return;
    }
    this.#opened(opened.value);
    await this.#flush();
  }

  #opened(opened: Opened): void {
    this.#state = 'open';
    this.#damaged = false;
    this.#lastId = Math.max(this.#lastId ?? 0, opened.lastId);
    const onDisk = new Map(opened.facts);
    for (const [key, value] of onDisk) {
      if (!this.#facts.has(key) && !this.#unsavedFacts.has(key)) this.#facts.set(key, value);
    }
    // Another file than before: a damaged one's successor, or one whose folder was taken away.
    for (const [key, value] of this.#facts) if (onDisk.get(key) !== value) this.#unsavedFacts.add(key);
    const isLate = this.#isReady && !this.#wasOpen;
    this.#wasOpen = true;
    // Before anything that was decided without them is written over them.
    if (isLate) this.#tellLate(onDisk);
    if (opened.putAside === null) return;
    this.#tell(
      `The event log was damaged. It is kept as ${opened.putAside}, and a fresh one was begun; ` +
        'check the disk if this happens again.',
      {},
    );
  }

  /** One `append` of many in the same turn of the event loop is one transaction. */
  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    queueMicrotask(() => {
      this.#flushQueued = false;
      void this.#flush();
    });
  }

  /** Writes all that waits. Ends early when a write fails. */
  async #flush(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    try {
      while (this.#state === 'open') {
        if (this.#pending.size > 0) {
          const events = this.#pending.first(BATCH_EVENTS);
          const written = await this.#write({ type: 'append', events: events.map(toRow) });
          if (!written.ok) return;
          this.#pending.committed(events, written.value);
        } else if (this.#unsavedFacts.size > 0) {
          const keys = [...this.#unsavedFacts];
          const facts = keys.map((key) => [key, this.#facts.get(key) ?? null] as const);
          if (!(await this.#write({ type: 'setFacts', facts })).ok) return;
          for (const [key, value] of facts) {
            if ((this.#facts.get(key) ?? null) === value) this.#unsavedFacts.delete(key);
          }
        } else if (this.#samples.length > 0) {
          const samples = this.#samples;
          if (!(await this.#write({ type: 'addSamples', samples })).ok) return;
          this.#samples = this.#samples.filter((sample) => !samples.includes(sample));
        } else {
          this.#recovered();
          return;
        }
      }
    } finally {
      this.#writing = false;
    }
  }

  /** A write is waited for however long it takes; its callers are not kept waiting with it. */
  async #write<Request extends StoreRequest>(
    request: Request,
  ): Promise<StoreResult<StoreAnswers[Request['type']]>> {
    const link = this.#link;
    if (link === null) return { ok: false, error: { damaged: false, why: 'it is closed' } };
    const slow = setTimeout(() => this.#pending.letGo(), this.#options.answerMs);
    const silent = setTimeout(
      () => this.#begin(this.#silence(this.#options.silentMs)),
      this.#options.silentMs,
    );
    const result = await link.request(request);
    clearTimeout(slow);
    clearTimeout(silent);
    if (!result.ok) this.#failed(result.error);
    return result;
  }

  /**
   * For a caller who waits, in the end without an answer. Reading is tried also while nothing can be
   * written, since a full disk can still be read.
   */
  async #ask<Request extends StoreRequest>(
    request: Request,
  ): Promise<StoreResult<StoreAnswers[Request['type']]>> {
    const link = this.#link;
    const reads = request.type.startsWith('query');
    if (link === null || (this.#state !== 'open' && !reads)) {
      return { ok: false, error: { damaged: false, why: this.#trouble ?? 'it is closed' } };
    }
    const answer = link.request(request);
    const limitMs = reads ? this.#options.silentMs : this.#options.answerMs;
    const result = await within(answer, limitMs, null);
    if (result === null) {
      const why = this.#silence(limitMs);
      if (reads) this.#begin(why);
      void answer.then((late) => (late.ok ? this.#flush() : this.#failed(late.error)));
      return { ok: false, error: { damaged: false, why } };
    }
    if (!result.ok && this.#state === 'open') this.#failed(result.error);
    return result;
  }

  #silence(forMs: number): string {
    return `the disk has not answered for ${forMs / 1000} s`;
  }

  #failed(failure: StoreFailure): void {
    if (this.#state === 'closed') return;
    this.#state = 'failing';
    this.#damaged ||= failure.damaged;
    this.#begin(failure.why);
    this.#pending.letGo();
    if (this.#retryTimer !== null) return;
    const pauseMs =
      failure.damaged && this.#tries === 0
        ? 0
        : this.#options.retryMs * 2 ** Math.min(this.#tries, RETRY_DOUBLINGS);
    this.#tries += 1;
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null;
      void this.#open();
    }, pauseMs);
    this.#retryTimer.unref();
  }

  #begin(why: string): void {
    const isNew = this.#trouble === null;
    this.#trouble = why;
    if (!isNew) return;
    this.#tell(
      `Events are not stored because ${why}. The newest are kept in memory and written once that is over.`,
      {},
    );
  }

  #recovered(): void {
    this.#tries = 0;
    if (this.#trouble === null) return;
    this.#trouble = null;
    const dropped = this.#pending.takeDroppedCount();
    if (dropped > 0) {
      this.#tell(`Events are stored again; ${dropped} older ones did not fit into memory and are lost.`, {
        dropped,
      });
    }
  }

  #tell(reason: string, numbers: NewEvent['numbers']): void {
    try {
      this.#options.onTrouble({ kind: 'storage_failed', reason, numbers });
    } catch {
      // The listener's own trouble must not become the store's.
    }
  }

  #tellLate(onDisk: ReadonlyMap<string, string>): void {
    try {
      this.#options.onLate?.(new Map([...onDisk].map(([key, value]) => [key, parseFact(value)])));
    } catch {
      // The listener's own trouble must not become the store's.
    }
  }

  async #prune(): Promise<void> {
    while (this.#state === 'open' && this.#link !== null) {
      const more = await this.#link.request({ type: 'prune', nowMs: this.#options.now() });
      if (!more.ok) this.#failed(more.error);
      if (!more.ok || !more.value) return;
    }
  }
}
