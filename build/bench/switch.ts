import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ensureSyntheticGguf, LARGE_SHAPE } from '../../electron/core/demo/synthetic-gguf.ts';
import { ChildEngineHost } from '../../electron/core/engine/child-host.ts';
import type { StateRecord } from '../../electron/core/engine/engine-host.ts';
import type { Result } from '../../shared/errors.ts';
import { type BenchReport, type BenchSide, figures, quantile } from './report.ts';

const ROUNDS = 4;
/** Turns a round: reading 2000 tokens is what takes long. */
const REPEATS = 6;
const SHORT_ROUNDS = 1;
const CONTEXT_TOKENS = 4096;
/** Of the conversation that is switched to. */
const SAID_TOKENS = 2000;
/** What each agent generates in its turn, beside which the other's state moves. */
const TURN_TOKENS = 24;
const AIM_TIMES = 50;
const AIM_HIDDEN = 0.8;
const NEVER = new AbortController().signal;

/** What each round measures, in milliseconds. */
type Kind = 'cold' | 'reevaluate' | 'swap' | 'inPlace' | 'alone' | 'beside' | 'wait' | 'token';

/**
 * The cost of a switch from one agent to another, of 12 layers and 2000 tokens each: the time until the
 * other has all that was said before it again, without the token that then follows.
 */
export async function benchSwitch(short: boolean): Promise<BenchReport> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-switch-'));
  const memory = mkdtempSync('/dev/shm/landlord-bench-switch-');
  const host = new ChildEngineHost({ gpu: 'cpu', threads: 1 });
  try {
    const path = await ensureSyntheticGguf(folder, LARGE_SHAPE);
    return await measure(host, path, memory, short ? SHORT_ROUNDS : ROUNDS);
  } finally {
    await host.stop();
    rmSync(folder, { recursive: true, force: true });
    rmSync(memory, { recursive: true, force: true });
  }
}

async function measure(
  host: ChildEngineHost,
  path: string,
  memory: string,
  rounds: number,
): Promise<BenchReport> {
  const samples = new Map<Kind, number[]>();
  const took = async (kind: Kind, work: () => Promise<void>): Promise<void> => {
    const beganAt = performance.now();
    await work();
    const list = samples.get(kind) ?? [];
    list.push(performance.now() - beganAt);
    samples.set(kind, list);
  };
  const load = async (): Promise<string> =>
    must(await host.loadModel({ path, gpuLayers: null }, NEVER)).modelId;
  let modelId = await load();
  const create = async (): Promise<string> =>
    must(await host.createContext({ modelId, contextTokens: CONTEXT_TOKENS })).contextId;
  const decode = async (contextId: string, tokens: readonly number[], maxTokens: number): Promise<void> => {
    must(await host.decode({ contextId, tokens, maxTokens }, () => {}, NEVER));
  };
  const save = async (contextId: string, name: string): Promise<StateRecord> =>
    must(await host.saveState(contextId, join(memory, name)));
  const restore = async (contextId: string, record: StateRecord): Promise<void> => {
    must(await host.restoreState(contextId, record));
  };
  const said = (agent: number): readonly number[] =>
    Array.from({ length: SAID_TOKENS }, (_, at) => 259 + ((at * 7 + agent * 13) % 50));

  for (let round = 0; round < rounds; round += 1) {
    // Two agents in two contexts, each with its 2000 tokens and one pending.
    const here = await create();
    const there = await create();
    await decode(here, said(1), 0);
    await took('reevaluate', () => decode(there, said(2), 0));
    await decode(here, [], 1);
    await decode(there, [], 1);
    const one = await save(here, 'one');
    const two = await save(there, 'two');
    await took('token', () => decode(here, [], 1));

    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      // A turn with nothing to move beside it, and the switch after it.
      await restore(here, one);
      await took('alone', () => decode(here, [], TURN_TOKENS));
      await took('inPlace', async () => {
        await save(here, 'out');
        await restore(here, two);
      });

      // A turn beside which the last agent's state goes out and the next one's comes in; what of that is
      // left when it ends is waited for.
      await restore(here, one);
      const moved = async (): Promise<void> => {
        await save(there, 'out');
        await restore(there, two);
      };
      let moving: Promise<void> = Promise.resolve();
      await took('beside', async () => {
        moving = moved();
        await decode(here, [], TURN_TOKENS);
      });
      await took('wait', () => moving);
    }
    must(await host.disposeContext(there));
    await took('swap', async () => {
      await save(here, 'out');
      must(await host.disposeContext(here));
      await restore(await create(), one);
    });
    await took('cold', async () => {
      must(await host.unloadModel(modelId));
      modelId = await load();
      await decode(await create(), said(1), 0);
    });
    must(await host.unloadModel(modelId));
    modelId = await load();
  }
  return report(samples);
}

function report(samples: ReadonlyMap<Kind, readonly number[]>): BenchReport {
  const of = (kind: Kind): readonly number[] => samples.get(kind) ?? [];
  const median = (kind: Kind): number => quantile(of(kind), 0.5);
  const side = (name: string, kind: Kind): BenchSide => ({
    name,
    samplesUs: of(kind).map((ms) => ms * 1000),
  });
  const sides = [
    side(`read ${SAID_TOKENS} tokens again`, 'reevaluate'),
    side('cold: unload, load, read again', 'cold'),
    side('swap: save, give memory back, new context, load', 'swap'),
    side('swap in place: save, load', 'inPlace'),
    side('one token', 'token'),
  ];
  const saved = (kind: Kind, from: Kind): string =>
    `${((1 - median(kind) / median(from)) * 100).toFixed(1)} %`;
  const times = median('reevaluate') / median('inPlace');
  const slowedMs = Math.max(0, median('beside') - median('alone'));
  const left = (slowedMs + median('wait')) / median('inPlace');
  return {
    part: 'switch',
    sides: figures(sides),
    notes: [
      `Saved against a cold switch: ${saved('swap', 'cold')} by a swap, ${saved('inPlace', 'cold')} by a swap in place.`,
      `A swap in place is ${times.toFixed(0)} times cheaper than reading ${SAID_TOKENS} tokens again (aim ${AIM_TIMES}: ${times >= AIM_TIMES ? 'met' : 'missed'}); one that gives its memory back, ${(median('reevaluate') / median('swap')).toFixed(0)} times.`,
      `Overlapped with a turn of ${TURN_TOKENS} tokens (${median('alone').toFixed(0)} ms alone, ${median('beside').toFixed(0)} ms beside it) ${((1 - left) * 100).toFixed(0)} % of a swap is hidden: ${median('wait').toFixed(1)} ms of ${median('inPlace').toFixed(1)} are waited for after it, and the turn takes ${slowedMs.toFixed(1)} ms longer (aim ${AIM_HIDDEN * 100} %: ${1 - left >= AIM_HIDDEN ? 'met' : 'missed'}).`,
      'On one thread of the CPU; the other core moves the states.',
    ],
  };
}

function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.error.code}: ${result.error.message}`);
  return result.value;
}
