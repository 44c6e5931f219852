import type { Result } from '../../../shared/errors.ts';
import type { RequestRecord } from './request-record.ts';
import type { RequestQuery } from './request-rows.ts';

export interface RequestStore {
  /** True when they are on disk. */
  addRequests(records: readonly RequestRecord[]): Promise<boolean>;
  requests(query: RequestQuery): Promise<Result<readonly RequestRecord[]>>;
}

/** Written together this often: a history is read by people, and a disk should not be woken by each request. */
const FLUSH_MS = 1_000;
const MOST_WAITING = 5_000;

/** The history of requests on its way to disk; while nothing can be written the newest wait in memory. */
export class RequestLog {
  readonly #store: RequestStore;
  #waiting: RequestRecord[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;

  constructor(store: RequestStore) {
    this.#store = store;
  }

  add(record: RequestRecord): void {
    this.#waiting.push(record);
    if (this.#waiting.length > MOST_WAITING) this.#waiting.shift();
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
    this.#timer.unref();
  }

  async query(query: RequestQuery): Promise<Result<readonly RequestRecord[]>> {
    await this.flush();
    return this.#store.requests(query);
  }

  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    const records = this.#waiting;
    if (records.length === 0) return;
    this.#waiting = [];
    this.#writing = this.#store.addRequests(records).then((written) => {
      if (!written) this.#waiting = [...records, ...this.#waiting].slice(-MOST_WAITING);
    });
    await this.#writing;
    this.#writing = null;
  }
}
