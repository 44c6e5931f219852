import type { Agent } from 'undici';
import {
  LARGE_SHAPE,
  MIDDLE_SHAPE,
  type SyntheticShape,
  TINY_SHAPE,
} from '../../electron/core/demo/synthetic-gguf.ts';
import { cpuShares } from './cpu-time.ts';
import { batchFigures, batchNote } from './gateway-batch.ts';
import { ask, benchClient, chat } from './gateway-client.ts';
import { latencies, latencyAims, latencyNotes } from './gateway-latency.ts';
import { type GatewayRig, startRig } from './gateway-rig.ts';
import { type StreamPlan, type StreamRates, streamNote, streamRates } from './gateway-streams.ts';
import { type BenchReport, figures } from './report.ts';

/** Enough for figures that repeat, or only to see that everything works. */
function plan(short: boolean) {
  return {
    latency: short ? { warmUp: 50, rounds: 2, perRound: 10 } : { warmUp: 10_000, rounds: 100, perRound: 25 },
    streams: short
      ? [{ clients: 8, tokens: 40, rounds: 1 }]
      : [
          // Many short rounds: what the machine does beside changes from second to second.
          { clients: 1, tokens: 500, rounds: 18 },
          { clients: 8, tokens: 300, rounds: 12 },
          { clients: 64, tokens: 100, rounds: 8 },
        ],
    // Of a model that takes its time, as real ones do: with the tiny one all of it is handing tokens on.
    slow: short
      ? { shape: MIDDLE_SHAPE, streams: [{ clients: 8, tokens: 4, rounds: 1 }] }
      : {
          shape: LARGE_SHAPE,
          streams: [
            { clients: 1, tokens: 40, rounds: 12 },
            { clients: 8, tokens: 20, rounds: 10 },
          ],
        },
    batch: short ? { samples: 3, depth: 4, batchTokens: 50 } : { samples: 60, depth: 16, batchTokens: 200 },
    memoryRequests: short ? 200 : 10_000,
  };
}

/** What each way to the same child adds to a one-token request, and what it leaves of a long stream. */
export async function benchGateway(short = false): Promise<BenchReport> {
  const { latency, streams, slow, batch, memoryRequests } = plan(short);
  const client = benchClient();
  await using rig = await startRig(TINY_SHAPE);
  const shares = cpuShares();
  try {
    const [gateway] = rig.ways.slice(-1);
    if (gateway === undefined) throw new Error('the rig has no gateway');
    const sides = await latencies(client, rig.ways, latency);
    const rates = [];
    for (const one of streams) rates.push(await streamRates(client, rig.ways, one));
    const first = await batchFigures(client, gateway, batch);
    const memory = await memoryOver(client, rig, memoryRequests);
    const slowRates = await ratesOf(client, slow.shape, slow.streams);
    const cores = shares();
    const contention =
      cores === null
        ? []
        : [
            `the cores were busy ${percent(cores.ours)} with this bench and ${percent(cores.others)} with others' work: ` +
              (cores.others > 0.1 ? 'do not trust differences of these figures' : 'quiet enough'),
          ];
    return {
      part: 'gateway',
      sides: figures(sides),
      notes: [
        ...rig.notes,
        ...latencyNotes(sides),
        ...latencyAims(sides),
        ...rates.map(streamNote),
        ...slowRates.map((one) => `of a slower model, ${streamNote(one)}`),
        batchNote(batch, first),
        `resident memory of the gateway's process: ${memory.map(({ requests, bytes }) => `${(bytes / 1e6).toFixed(0)} MB after ${requests}`).join(', ')} requests`,
        ...contention,
      ],
      details: {
        latency: sides.map(({ name, addedMs, cpuMs }) => ({ name, addedMs, cpuMs })),
        streams: rates,
        slowStreams: slowRates,
        firstToken: { ...batch, ...first },
        memory,
        cores,
      },
    };
  } finally {
    await client.destroy();
  }
}

async function ratesOf(
  client: Agent,
  shape: SyntheticShape,
  plans: readonly StreamPlan[],
): Promise<readonly StreamRates[]> {
  await using rig = await startRig(shape);
  const rates: StreamRates[] = [];
  for (const one of plans) rates.push(await streamRates(client, rig.ways, one));
  return rates;
}

async function memoryOver(
  client: Agent,
  rig: GatewayRig,
  requests: number,
): Promise<readonly { readonly requests: number; readonly bytes: number }[]> {
  const [gateway] = rig.ways.slice(-1);
  if (gateway === undefined) return [];
  const text = chat(1, false);
  const readings: { readonly requests: number; readonly bytes: number }[] = [];
  for (let count = 1; count <= requests; count += 1) {
    await ask(client, gateway, text);
    if (count % (requests / 5) === 0) readings.push({ requests: count, bytes: rig.gatewayBytes() });
  }
  return readings;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
