import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RequestRecord } from '../events/request-record.ts';
import { prometheus } from '../http/prometheus.ts';

/** Upper bounds in seconds, from a token of a small model to a long prompt of a large one. */
const BOUNDS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

interface Meters {
  readonly registry: Registry;
  readonly requests: Counter<'route' | 'class' | 'code'>;
  readonly inFlight: Gauge;
  readonly firstByte: Histogram;
  readonly waited: Counter;
  readonly tokens: Counter;
}

/** So many in one go cost a fraction of what each costs by itself. */
const TOGETHER = 64;

/** The gateway's figures for Prometheus. Requests are counted some at a time, and whenever somebody asks. */
export class Counts {
  #loading: Promise<Meters> | null = null;
  #uncounted: RequestRecord[] = [];

  add(record: RequestRecord): void {
    this.#uncounted.push(record);
    if (this.#uncounted.length === TOGETHER) void this.#count();
  }

  /** Text format 0.0.4. */
  async render(inFlight: number): Promise<string> {
    const meters = await this.#count();
    meters.inFlight.set(inFlight);
    return meters.registry.metrics();
  }

  async #count(): Promise<Meters> {
    this.#loading ??= makeMeters();
    const meters = await this.#loading;
    const records = this.#uncounted;
    this.#uncounted = [];
    for (const record of records) count(meters, record);
    return meters;
  }
}

function count(meters: Meters, record: RequestRecord): void {
  const code = record.status === null ? 'left' : String(record.status);
  meters.requests.inc({ route: record.route, class: record.class, code });
  meters.waited.inc(record.waitedMs / 1000);
  meters.tokens.inc(record.generatedTokens ?? 0);
  if (record.firstByteMs !== null) meters.firstByte.observe(record.firstByteMs / 1000);
}

async function makeMeters(): Promise<Meters> {
  const { Registry: OneRegistry, Counter: OneCounter, Gauge: OneGauge, Histogram: One } = await prometheus();
  const registry = new OneRegistry();
  const registers = [registry];
  return {
    registry,
    requests: new OneCounter({
      name: 'landlord_requests_total',
      help: 'Requests through the gateway that are over.',
      labelNames: ['route', 'class', 'code'],
      registers,
    }),
    inFlight: new OneGauge({
      name: 'landlord_requests_in_flight',
      help: 'Requests being served or waiting.',
      registers,
    }),
    firstByte: new One({
      name: 'landlord_first_byte_seconds',
      help: 'From arrival to the first byte of the answer.',
      buckets: BOUNDS_S,
      registers,
    }),
    waited: new OneCounter({
      name: 'landlord_request_wait_seconds_total',
      help: 'Time requests have waited for lane or memory.',
      registers,
    }),
    tokens: new OneCounter({
      name: 'landlord_generated_tokens_total',
      help: 'Tokens generated, as far as answers say.',
      registers,
    }),
  };
}
