import type { Agent } from 'undici';
import { ask, chat, inTurn } from './gateway-client.ts';
import type { Way } from './gateway-rig.ts';
import { quantile } from './report.ts';

export interface StreamPlan {
  readonly clients: number;
  readonly tokens: number;
  readonly rounds: number;
}

export interface StreamRates extends StreamPlan {
  readonly ways: readonly {
    readonly name: string;
    readonly tokensPerSecond: number;
    /** Of direct, the median of the rounds' own shares; null: it is direct. */
    readonly share: number | null;
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
  for (let round = -1; round < plan.rounds; round += 1)
    for (const way of inTurn(ways, round)) {
      const beginMs = performance.now();
      const answers = await Promise.all(Array.from({ length: plan.clients }, () => ask(client, way, text)));
      const seconds = (performance.now() - beginMs) / 1000;
      const count = answers.reduce((sum, answer) => sum + answer.text.split('\ndata: {').length, 0);
      if (round >= 0) rates.get(way.name)?.push(count / seconds);
    }
  const [direct] = ways;
  const base = rates.get(direct?.name ?? '') ?? [];
  return {
    ...plan,
    ways: ways.map((way) => {
      const own = rates.get(way.name) ?? [];
      const shares = own.map((rate, round) => rate / (base[round] ?? Number.NaN));
      return {
        name: way.name,
        tokensPerSecond: quantile(own, 0.5),
        share: way === direct ? null : quantile(shares, 0.5),
      };
    }),
  };
}

export function streamNote({ clients, ways }: StreamRates): string {
  const parts = ways.map(({ name, tokensPerSecond, share }) => {
    const of = share === null ? '' : ` (${(100 * share).toFixed(1)} %)`;
    return `${name} ${tokensPerSecond.toFixed(0)}${of}`;
  });
  const ours = ways.at(-1)?.share ?? Number.NaN;
  const aim = `aim ${100 * AIM} % of direct ${ours >= AIM ? 'met' : 'not met'}`;
  return `tokens/s of ${clients} ${clients === 1 ? 'stream' : 'streams'}, ${aim}: ${parts.join(', ')}`;
}
