import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ensureSyntheticGguf, LARGE_SHAPE } from '../../electron/core/demo/synthetic-gguf.ts';
import { ChildEngineHost } from '../../electron/core/engine/child-host.ts';
import type { StateRecord } from '../../electron/core/engine/engine-host.ts';
import type { Result } from '../../shared/errors.ts';
import { type Mode, measureOverlap, type OverlapFigures } from './overlap.ts';
import { type BenchReport, type BenchSide, figures, quantile } from './report.ts';

const ROUNDS = 4;
/** Turns a round: reading 2000 tokens is what takes long. */
const REPEATS = 6;
const SHORT_ROUNDS = 1;
/** Blocks of turns with overlap, and as many without. */
const BLOCKS = 5;
const CONTEXT_TOKENS = 4096;
/** Of the conversation that is switched to. */
const SAID_TOKENS = 2000;
/** What each agent generates in its turn, while the next one's context is made ready. */
const TURN_TOKENS = 24;
const AIM_TIMES = 50;
const AIM_HIDDEN = 0.8;
const NEVER = new AbortController().signal;

/** What each round measures, in milliseconds. */
type Kind = 'cold' | 'reevaluate' | 'swap' | 'inPlace' | 'token';

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
    const samples = await measure(host, path, memory, short ? SHORT_ROUNDS : ROUNDS);
    const overlap = await measureOverlap({
      host,
      path,
      folder,
      memory,
      // A byte is a token of the synthetic model.
      said: 'a talk '.repeat(Math.floor(SAID_TOKENS / 7)),
      turnTokens: TURN_TOKENS,
      blocks: short ? 1 : BLOCKS,
    });
    return report(samples, overlap);
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
): Promise<ReadonlyMap<Kind, readonly number[]>> {
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
      await restore(here, one);
      await decode(here, [], 1);
      await took('inPlace', async () => {
        await save(here, 'out');
        await restore(here, two);
      });
    }
    must(await host.disposeContext(there));
    let current = here;
    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      await took('swap', async () => {
        await save(current, 'out');
        must(await host.disposeContext(current));
        current = await create();
        await restore(current, one);
      });
      await decode(current, [], 1);
    }
    await took('cold', async () => {
      must(await host.unloadModel(modelId));
      modelId = await load();
      await decode(await create(), said(1), 0);
    });
    must(await host.unloadModel(modelId));
    modelId = await load();
  }
  must(await host.unloadModel(modelId));
  return samples;
}

function report(samples: ReadonlyMap<Kind, readonly number[]>, overlap: OverlapFigures): BenchReport {
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
  const times = (kind: Kind): number => median('reevaluate') / median(kind);
  const { gapsMs, wallsMs, tokenMs, turns } = overlap;
  const gap = (mode: Mode): number => quantile(gapsMs[mode], 0.5);
  const wall = (mode: Mode): number => quantile(wallsMs[mode], 0.5);
  const hidden = 1 - gap('ahead') / gap('one');
  const isMet = (met: boolean): string => (met ? 'met' : 'missed');
  return {
    part: 'switch',
    sides: figures(sides),
    notes: [
      `Saved against a cold switch: ${saved('swap', 'cold')} by a swap, ${saved('inPlace', 'cold')} by a swap in place.`,
      `A swap in place is ${times('inPlace').toFixed(0)} times cheaper than reading ${SAID_TOKENS} tokens again (aim ${AIM_TIMES}: ${isMet(times('inPlace') >= AIM_TIMES)}); one that gives its memory back and has a context made anew, ${times('swap').toFixed(0)} times (${isMet(times('swap') >= AIM_TIMES)}).`,
      `Three agents of a model each in turn, ${TURN_TOKENS} tokens a turn: from the last token of one to the first of the next, less a token's ${tokenMs.toFixed(1)} ms, ${gap('one').toFixed(1)} ms where the switch comes after the turn, and ${gap('ahead').toFixed(1)} ms where it is made ready during it in a second context: ${percent(hidden)} of it is hidden (aim ${percent(AIM_HIDDEN)}: ${isMet(hidden >= AIM_HIDDEN)}).`,
      `${turns} such turns take ${wall('one').toFixed(0)} ms with one context, ${wall('two').toFixed(0)} ms with two, and ${wall('ahead').toFixed(0)} ms with two and overlap: ${percent(1 - wall('ahead') / wall('one'))} saved against one, ${percent(1 - wall('ahead') / wall('two'))} against two, slower decoding beside the switches counted.`,
      'On one thread of the CPU; the other core moves the states. The three kinds of blocks take turns.',
    ],
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.error.code}: ${result.error.message}`);
  return result.value;
}
