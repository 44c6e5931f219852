import type { Agent } from 'undici';
import { ranMs } from './cpu-time.ts';
import { ask, chat, inTurn } from './gateway-client.ts';
import type { Way } from './gateway-rig.ts';
import { type BenchSide, medianNoise, quantile } from './report.ts';

export interface Latency extends BenchSide {
  /** Over direct, ms: of each round the difference of the medians (p50), and of all samples the quantiles. */
  readonly addedMs: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    /** How far p50 may be off. */
    readonly noise: number;
  } | null;
  /** What its own process ran for a request; null: not shown, or several processes. */
  readonly cpuMs: number | null;
}

export interface LatencyPlan {
  readonly warmUp: number;
  readonly rounds: number;
  readonly perRound: number;
}

/** A request of one token, over and over, by each way in turn. */
export async function latencies(
  client: Agent,
  ways: readonly Way[],
  plan: LatencyPlan,
): Promise<readonly Latency[]> {
  const text = chat(1, false);
  // A service runs for days: each way has its code compiled before anything counts.
  for (const way of ways) await manyAtOnce(client, way, text, plan.warmUp);
  const rounds = new Map<string, number[][]>(ways.map((way) => [way.name, []]));
  const ran = new Map<string, number>();
  for (let round = 0; round < plan.rounds; round += 1)
    for (const way of inTurn(ways, round)) {
      const samples: number[] = [];
      await ask(client, way, text);
      const before = way.pid === null ? null : ranMs(way.pid);
      for (let index = 0; index < plan.perRound; index += 1)
        samples.push((await ask(client, way, text)).totalMs);
      const after = way.pid === null ? null : ranMs(way.pid);
      if (before !== null && after !== null) ran.set(way.name, (ran.get(way.name) ?? 0) + after - before);
      rounds.get(way.name)?.push(samples);
    }
  const [direct] = ways;
  const base = rounds.get(direct?.name ?? '') ?? [];
  return ways.map((way) => {
    const own = rounds.get(way.name) ?? [];
    const all = own.flat();
    const cpuMs = ran.get(way.name);
    const added = own.map((samples, round) => quantile(samples, 0.5) - quantile(base[round] ?? [], 0.5));
    return {
      name: way.name,
      samplesUs: all.map((ms) => ms * 1000),
      cpuMs: cpuMs === undefined ? null : cpuMs / (plan.rounds * plan.perRound),
      addedMs:
        way === direct
          ? null
          : {
              p50: quantile(added, 0.5),
              noise: medianNoise(added),
              p90: quantile(all, 0.9) - quantile(base.flat(), 0.9),
              p99: quantile(all, 0.99) - quantile(base.flat(), 0.99),
            },
    };
  });
}

async function manyAtOnce(client: Agent, way: Way, text: string, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await ask(client, way, text);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

export function latencyNotes(sides: readonly Latency[]): readonly string[] {
  return sides.flatMap(({ name, addedMs, cpuMs }) => {
    if (addedMs === null) return [];
    const cpu = cpuMs === null ? '' : `; its process runs ${cpuMs.toFixed(2)} ms a request`;
    return [
      `${name} adds ${addedMs.p50.toFixed(2)} ms ± ${addedMs.noise.toFixed(2)} (p50), ${addedMs.p90.toFixed(2)} (p90), ${addedMs.p99.toFixed(2)} (p99)${cpu}`,
    ];
  });
}

/** Whether the aims hold, in a sentence each. */
export function latencyAims(sides: readonly Latency[]): readonly string[] {
  const added = (name: string): number =>
    sides.find((side) => side.name.startsWith(name))?.addedMs?.p50 ?? Number.NaN;
  const said = (what: string, ours: number, limit: number): string =>
    `aim, the gateway adds at most ${what}: ${ours.toFixed(2)} ms against ${limit.toFixed(2)}, ${ours <= limit ? 'met' : 'not met'}`;
  const ours = added('gateway');
  return [
    said('half of what the router adds', ours, added('llama.cpp router') / 2),
    said('what a plain undici proxy adds', ours, added('plain undici')),
    said('what the leanest of its kind adds (undici.stream)', ours, added('the same by')),
  ];
}
