import { link, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { systemClock } from '../../electron/core/clock.ts';
import type { ChildEngineHost } from '../../electron/core/engine/child-host.ts';
import { EngineDesk } from '../../electron/core/engine/desk/desk.ts';
import type { DeskWorld } from '../../electron/core/engine/desk/desk-world.ts';
import { StateFiles } from '../../electron/core/engine/desk/state-files.ts';
import type { EngineHost } from '../../electron/core/engine/engine-host.ts';
import { Ledger } from '../../electron/core/ledger/ledger.ts';
import { ok } from '../../shared/errors.ts';
import { quantile } from './report.ts';

/** One after the other the three agents of a block have so many turns each. */
const ROUNDS = 4;
const AGENTS = ['one', 'two', 'three'] as const;
const CONTEXT_TOKENS = 4096;
const DEVICE = 'bench:0';
const MB = 1_000_000;
/** The ledger's figures here: weights are small, and contexts are what the cap counts. */
const WEIGHTS_BYTES = MB;
const CONTEXT_BYTES = 100 * MB;
const NEVER = new AbortController().signal;

/**
 * `one`: room for one context, so that each turn begins with a switch; `two`: room for two, so that some
 * agents are still there when their turn comes; `ahead`: room for two, and the next one's is made ready
 * while another decodes.
 */
export type Mode = 'one' | 'two' | 'ahead';

const MODES: readonly Mode[] = ['one', 'two', 'ahead'];

/** How the same turns went, in milliseconds. */
export interface OverlapFigures {
  /** From the last token of one agent to the first of the next, less the time a token takes. */
  readonly gapsMs: Readonly<Record<Mode, readonly number[]>>;
  /** Of a block of turns, one after the other. */
  readonly wallsMs: Readonly<Record<Mode, readonly number[]>>;
  readonly tokenMs: number;
  readonly turns: number;
}

export interface OverlapOptions {
  readonly host: ChildEngineHost;
  /** One model file; each agent has it under a name of its own, so that each loads it for itself. */
  readonly path: string;
  readonly folder: string;
  /** On a tmpfs. */
  readonly memory: string;
  readonly said: string;
  readonly turnTokens: number;
  /** Of each mode. */
  readonly blocks: number;
}

/**
 * Three agents that always have something to ask, each with a model of its own. The desk does as it does
 * in the runtime; what is measured is when the tokens come.
 */
export async function measureOverlap(options: OverlapOptions): Promise<OverlapFigures> {
  const { folder, memory, path, turnTokens } = options;
  const tokens: { readonly at: number; readonly isFirst: boolean }[] = [];
  let mode: Mode = 'one';
  const ledger = new Ledger();
  const goTo = (next: Mode): void => {
    mode = next;
    const contexts = mode === 'one' ? 1.5 : 2.5;
    const capBytes = AGENTS.length * WEIGHTS_BYTES + contexts * CONTEXT_BYTES;
    ledger.setLimits(DEVICE, { totalBytes: 100_000 * MB, capBytes, floorBytes: MB, hardFloorBytes: MB });
  };
  goTo('one');
  ledger.reconcile(DEVICE, {
    driverFreeBytes: 100_000 * MB,
    hostAvailableBytes: null,
    totalBytes: 100_000 * MB,
    unified: false,
    sampledAtMs: systemClock.monotonicMs(),
  });
  const desk = new EngineDesk({
    world: worldOf(watched(options.host, tokens), ledger),
    files: new StateFiles({
      hostDir: join(memory, 'states'),
      fileDir: join(folder, 'states'),
      hostBudgetBytes: 1_000 * MB,
      fileBudgetBytes: 1_000 * MB,
      roomBytes: async () => null,
    }),
    store: { all: async () => ({}), set: async () => undefined },
    limits: () => ({ ahead: mode === 'ahead' }),
  });
  await desk.open(true);
  await mkdir(join(folder, 'agents'), { recursive: true });
  for (const agent of AGENTS) {
    const own = join(folder, 'agents', `${agent}.gguf`);
    await link(path, own);
    const request = { agent, path: own, holder: null, fit: false, class: null } as const;
    const done = await desk.register({ ...request, contextTokens: CONTEXT_TOKENS }, NEVER);
    if (!done.ok) throw new Error(done.error.error.message);
  }
  const ask = async (agent: string, prompt: string): Promise<void> => {
    const done = await desk.decode({ agent, maxTokens: turnTokens, prompt }, NEVER);
    if (!done.ok) throw new Error(done.error.error.message);
  };
  const block = async (rounds: number): Promise<number> => {
    tokens.length = 0;
    const beganAt = performance.now();
    await Promise.all(
      AGENTS.map(async (agent) => {
        for (let round = 0; round < rounds; round += 1) await ask(agent, '');
      }),
    );
    return performance.now() - beganAt;
  };
  for (const agent of AGENTS) await ask(agent, options.said);
  const gaps: Record<Mode, number[]> = { one: [], two: [], ahead: [] };
  const walls: Record<Mode, number[]> = { one: [], two: [], ahead: [] };
  const between: number[] = [];
  for (let round = 0; round < options.blocks; round += 1) {
    for (const at of MODES.keys()) {
      const next = MODES[(at + round) % MODES.length];
      if (next === undefined) continue;
      goTo(next);
      // A block of its own brings the agents into the order the mode leaves them in.
      await block(1);
      walls[next].push(await block(ROUNDS));
      for (const [index, token] of tokens.entries()) {
        const before = tokens[index - 1];
        if (before === undefined) continue;
        (token.isFirst ? gaps[next] : between).push(token.at - before.at);
      }
    }
  }
  for (const agent of AGENTS) await desk.unregister(agent);
  await desk.stop();
  const tokenMs = quantile(between, 0.5);
  const less = (list: readonly number[]): readonly number[] => list.map((gap) => Math.max(0, gap - tokenMs));
  return {
    gapsMs: { one: less(gaps.one), two: less(gaps.two), ahead: less(gaps.ahead) },
    wallsMs: walls,
    tokenMs,
    turns: ROUNDS * AGENTS.length,
  };
}

/** The engine, with the moment of each token noted. */
function watched(host: ChildEngineHost, tokens: { at: number; isFirst: boolean }[]): EngineHost {
  return new Proxy(host, {
    get(target, key) {
      if (key !== 'decode') {
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      }
      const decode: EngineHost['decode'] = (request, onToken, signal) => {
        let isFirst = true;
        const note: typeof onToken = (piece) => {
          tokens.push({ at: performance.now(), isFirst });
          isFirst = false;
          onToken(piece);
        };
        return target.decode(request, note, signal);
      };
      return decode;
    },
  });
}

function worldOf(host: EngineHost, ledger: Ledger): DeskWorld {
  return {
    host,
    ledger,
    clock: systemClock,
    estimate: async ({ contextTokens }) =>
      ok({
        weightsBytes: WEIGHTS_BYTES,
        kvBytes: CONTEXT_BYTES,
        recurrentBytes: 0,
        computeBytes: 0,
        overheadBytes: 0,
        totalBytes: WEIGHTS_BYTES + CONTEXT_BYTES,
        layers: 12,
        kvLayers: 12,
        contextTokens: contextTokens ?? CONTEXT_TOKENS,
        notes: [],
      }),
    device: async () => ok({ id: DEVICE, name: 'bench', kind: 'cpu', unified: false }),
    devices: () => [DEVICE],
    engineIdle: async () => undefined,
    makeRoom: async () => false,
    bookedElsewhere: () => false,
    reading: async () => undefined,
    advice: () => '',
    policy: () => ({ draining: false, asleep: false, isBig: () => false }),
    usualContextTokens: () => CONTEXT_TOKENS,
    classOf: () => 'interactive',
    tell: () => undefined,
    changed: () => undefined,
    realPath: async (path) => path,
  };
}
