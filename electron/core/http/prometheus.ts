import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface Prometheus {
  readonly Registry: typeof Registry;
  readonly Counter: typeof Counter;
  readonly Gauge: typeof Gauge;
  readonly Histogram: typeof Histogram;
}

let loaded: Promise<Prometheus> | null = null;

/** prom-client, when it is first needed: a runtime that nobody asks for figures does not hold it. */
export function prometheus(): Promise<Prometheus> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Prometheus> {
  const [registry, counter, gauge, histogram] = await Promise.all([
    import('prom-client/lib/registry.js'),
    import('prom-client/lib/counter.js'),
    import('prom-client/lib/gauge.js'),
    import('prom-client/lib/histogram.js'),
  ]);
  return {
    Registry: registry.default,
    Counter: counter.default,
    Gauge: gauge.default,
    Histogram: histogram.default,
  };
}
