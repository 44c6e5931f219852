import type { RequestRecord } from '../events/request-record.ts';

/** Upper bounds in seconds, from a token of a small model to a long prompt of a large one. */
const BOUNDS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Counters of the gateway in the Prometheus text format 0.0.4. */
export class Counts {
  readonly #requests = new Map<string, number>();
  readonly #buckets: number[] = BOUNDS_S.map(() => 0);
  #firstBytes = 0;
  #firstByteSumS = 0;
  #waitedS = 0;
  #tokens = 0;

  add(record: RequestRecord): void {
    const code = record.status === null ? 'left' : String(record.status);
    const key = `route="${record.route}",class="${record.class}",code="${code}"`;
    this.#requests.set(key, (this.#requests.get(key) ?? 0) + 1);
    this.#waitedS += record.waitedMs / 1000;
    this.#tokens += record.generatedTokens ?? 0;
    if (record.firstByteMs === null) return;
    const seconds = record.firstByteMs / 1000;
    this.#firstBytes += 1;
    this.#firstByteSumS += seconds;
    for (const [index, bound] of BOUNDS_S.entries())
      if (seconds <= bound) this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
  }

  render(inFlight: number): string {
    const lines: string[] = [];
    const metric = (name: string, type: string, help: string, values: readonly string[]): void => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...values);
    };
    metric(
      'landlord_requests_total',
      'counter',
      'Requests through the gateway that are over.',
      [...this.#requests].map(([labels, count]) => `landlord_requests_total{${labels}} ${count}`),
    );
    metric('landlord_requests_in_flight', 'gauge', 'Requests being served or waiting.', [
      `landlord_requests_in_flight ${inFlight}`,
    ]);
    metric('landlord_first_byte_seconds', 'histogram', 'From arrival to the first byte of the answer.', [
      ...BOUNDS_S.map(
        (bound, index) => `landlord_first_byte_seconds_bucket{le="${bound}"} ${this.#buckets[index] ?? 0}`,
      ),
      `landlord_first_byte_seconds_bucket{le="+Inf"} ${this.#firstBytes}`,
      `landlord_first_byte_seconds_sum ${this.#firstByteSumS}`,
      `landlord_first_byte_seconds_count ${this.#firstBytes}`,
    ]);
    metric(
      'landlord_request_wait_seconds_total',
      'counter',
      'Time requests have waited for lane or memory.',
      [`landlord_request_wait_seconds_total ${this.#waitedS}`],
    );
    metric('landlord_generated_tokens_total', 'counter', 'Tokens generated, as far as answers say.', [
      `landlord_generated_tokens_total ${this.#tokens}`,
    ]);
    return `${lines.join('\n')}\n`;
  }
}
