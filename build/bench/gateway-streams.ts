import type { Agent } from 'undici';
import { ranMs } from './cpu-time.ts';
import { ask, chat, inTurn } from './gateway-client.ts';
import type { Way } from './gateway-rig.ts';
import { medianNoise, quantile } from './report.ts';

export interface StreamPlan {
  readonly clients: number;
  readonly tokens: number;
  readonly rounds: number;
}

export interface StreamRates extends StreamPlan {
  readonly ways: readonly {
    readonly name: string;
    readonly tokensPerSecond: number;
    /** Of direct, the median of the rounds' own shares, and how far that may be off; null: it is direct. */
    readonly share: number | null;
    readonly noise: number | null;
    /** What its own process ran for a token; null: not shown, or several processes. */
    readonly cpuUs: number | null;
  }[];
}

const AIM = 0.99;

/** Tokens a second of all clients together, by each way in turn. */
export async function streamRates(
  client: Agent,
  ways: readonly Way[],
  plan: StreamPlan,
): Promise<StreamRates> {
  const text = chat(plan.tokens, true);
  const rates = new Map<string, number[]>(ways.map((way) => [way.name, []]));
  const cpus = new Map<string, number[]>(ways.map((way) => [way.name, []]));
  for (let round = -1; round < plan.rounds; round += 1)
    for (const way of inTurn(ways, round)) {
      const before = way.pid === null ? null : ranMs(way.pid);
      const beginMs = performance.now();
      const answers = await Promise.all(Array.from({ length: plan.clients }, () => ask(client, way, text)));
      const seconds = (performance.now() - beginMs) / 1000;
      const count = answers.reduce((sum, answer) => sum + answer.text.split('\ndata: {').length, 0);
      const after = way.pid === null ? null : ranMs(way.pid);
      if (round < 0) continue;
      rates.get(way.name)?.push(count / seconds);
      if (before !== null && after !== null) cpus.get(way.name)?.push(((after - before) * 1000) / count);
    }
  const [direct] = ways;
  const base = rates.get(direct?.name ?? '') ?? [];
  return {
    ...plan,
    ways: ways.map((way) => {
      const own = rates.get(way.name) ?? [];
      const shares = own.map((rate, round) => rate / (base[round] ?? Number.NaN));
      const cpu = cpus.get(way.name) ?? [];
      return {
        name: way.name,
        tokensPerSecond: quantile(own, 0.5),
        share: way === direct ? null : quantile(shares, 0.5),
        noise: way === direct ? null : medianNoise(shares),
        cpuUs: cpu.length === 0 ? null : quantile(cpu, 0.5),
      };
    }),
  };
}

export function streamNote({ clients, ways }: StreamRates): string {
  const parts = ways.map(({ name, tokensPerSecond, share, noise, cpuUs }) => {
    const of = share === null ? '' : ` (${(100 * share).toFixed(1)} % ± ${(100 * (noise ?? 0)).toFixed(1)})`;
    const cpu = cpuUs === null ? '' : ` running ${cpuUs.toFixed(0)} µs a token`;
    return `${name} ${tokensPerSecond.toFixed(0)}${of}${cpu}`;
  });
  const { share: ours, noise } = ways.at(-1) ?? { share: null, noise: null };
  const aim = `aim ${100 * AIM} % of direct ${verdict(ours ?? Number.NaN, noise ?? 0)}`;
  return `tokens/s of ${clients} ${clients === 1 ? 'stream' : 'streams'}, ${aim}: ${parts.join(', ')}`;
}

function verdict(share: number, noise: number): string {
  if (share >= AIM) return 'met';
  return share + noise >= AIM ? 'within the noise' : 'not met';
}
