import { Agent, request } from 'undici';
import { type GatewayRig, MODEL, startRig, type Way } from './gateway-rig.ts';
import { type BenchReport, type BenchSide, figures, quantile } from './report.ts';

const ROUNDS = 30;
const PER_ROUND = 20;
const STREAM_CLIENTS = [
  { clients: 1, tokens: 1000 },
  { clients: 8, tokens: 500 },
  { clients: 64, tokens: 150 },
];
const STREAM_ROUNDS = 3;
const MEMORY_REQUESTS = 10_000;
const AIM_STREAM = 0.99;

/** What each way to the same child adds to a one-token request, and what it leaves of a long stream. */
export async function benchGateway(): Promise<BenchReport> {
  const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  await using rig = await startRig();
  try {
    const sides = await latencies(agent, rig.ways);
    const notes = [...rig.notes, ...latencyNotes(sides)];
    for (const { clients, tokens } of STREAM_CLIENTS)
      notes.push(await streams(agent, rig.ways, clients, tokens));
    notes.push(await memory(agent, rig));
    return { part: 'gateway', sides: figures(sides), notes };
  } finally {
    await agent.destroy();
  }
}

function body(tokens: number, stream: boolean): string {
  return JSON.stringify({
    model: MODEL,
    messages: [{ role: 'user', content: 'abcdefgh' }],
    max_tokens: tokens,
    stream,
    // Random weights end a sentence at random.
    ignore_eos: true,
  });
}

async function ask(agent: Agent, { origin }: Way, text: string): Promise<string> {
  const answer = await request(`${origin}/v1/chat/completions`, {
    dispatcher: agent,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-landlord-session': 'bench' },
    body: text,
  });
  const got = await answer.body.text();
  if (answer.statusCode !== 200)
    throw new Error(`${origin} answered ${answer.statusCode}: ${got.slice(0, 200)}`);
  return got;
}

async function latencies(agent: Agent, ways: readonly Way[]): Promise<readonly BenchSide[]> {
  const samples = new Map<string, number[]>(ways.map((way) => [way.name, []]));
  const text = body(1, false);
  // The first round warms all of them up, and is thrown away.
  for (let round = -1; round < ROUNDS; round += 1)
    for (const way of ways)
      for (let index = 0; index < PER_ROUND; index += 1) {
        const begin = performance.now();
        await ask(agent, way, text);
        if (round >= 0) samples.get(way.name)?.push((performance.now() - begin) * 1000);
      }
  return ways.map(({ name }) => ({ name, samplesUs: samples.get(name) ?? [] }));
}

function latencyNotes(sides: readonly BenchSide[]): readonly string[] {
  const [direct] = sides;
  if (direct === undefined) return [];
  const added = (side: BenchSide, share: number): string =>
    ((quantile(side.samplesUs, share) - quantile(direct.samplesUs, share)) / 1000).toFixed(2);
  return sides
    .slice(1)
    .map(
      (side) =>
        `${side.name} adds ${added(side, 0.5)} ms (p50), ${added(side, 0.9)} (p90), ${added(side, 0.99)} (p99)`,
    );
}

async function streams(agent: Agent, ways: readonly Way[], clients: number, tokens: number): Promise<string> {
  const rates = new Map<string, number[]>(ways.map((way) => [way.name, []]));
  const text = body(tokens, true);
  for (let round = 0; round < STREAM_ROUNDS; round += 1)
    for (const way of ways) {
      const begin = performance.now();
      const answers = await Promise.all(Array.from({ length: clients }, () => ask(agent, way, text)));
      const seconds = (performance.now() - begin) / 1000;
      const count = answers.reduce((sum, answer) => sum + answer.split('\ndata: {').length, 0);
      rates.get(way.name)?.push(count / seconds);
    }
  const direct = quantile(rates.get('direct') ?? [], 0.5);
  const parts = ways.map(({ name }) => {
    const rate = quantile(rates.get(name) ?? [], 0.5);
    return `${name} ${rate.toFixed(0)} (${((100 * rate) / direct).toFixed(1)} %)`;
  });
  return `tokens/s of ${clients} ${clients === 1 ? 'stream' : 'streams'} (aim ${100 * AIM_STREAM} % of direct): ${parts.join(', ')}`;
}

async function memory(agent: Agent, rig: GatewayRig): Promise<string> {
  const gateway = rig.ways.at(-1);
  if (gateway === undefined) return 'no gateway';
  const text = body(1, false);
  const readings: string[] = [];
  for (let count = 1; count <= MEMORY_REQUESTS; count += 1) {
    await ask(agent, gateway, text);
    if (count === 1_000 || count % 3_000 === 1_000)
      readings.push(`${(rig.gatewayBytes() / 1e6).toFixed(0)} MB after ${count}`);
  }
  return `resident memory of the gateway's process: ${readings.join(', ')} requests`;
}
