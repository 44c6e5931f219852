import { join } from 'node:path';
import { procfs } from '../../electron/core/process/procfs.ts';
import { TALKER_SHAPE } from './engine.ts';
import { childrenOf, costOf, type ProcessCost } from './figures.ts';
import { gguf, MIDDLE_SHAPE, TINY_SHAPE } from './gguf.ts';
import { CARD_BYTES, load } from './measure-guard.ts';
import { startRouter } from './router.ts';
import { type ServedLandlord, type ServeOptions, serveLandlord } from './served-landlord.ts';
import { SocketClient } from './socket-client.ts';

/** What the runtime costs when nothing happens, as a process of its own over a real router. */
const GB = 1_000_000_000;

export interface IdleWay {
  readonly name: string;
  /** Somebody listens to what an open window listens to. */
  readonly isOpen: boolean;
  /** Registered with the engine, none at work. */
  readonly agents: number;
}

export interface IdleCost {
  readonly name: string;
  readonly elapsedMs: number;
  /** The runtime's own process, then those of its children that last. */
  readonly before: readonly ProcessCost[];
  readonly after: readonly ProcessCost[];
}

export const WINDOW_CLOSED: IdleWay = { name: 'window closed', isOpen: false, agents: 0 };
export const WINDOW_OPEN: IdleWay = { name: 'window open', isOpen: true, agents: 0 };
export const FIFTY_AGENTS: IdleWay = { name: '50 agents', isOpen: false, agents: 50 };

/**
 * Over a router with three models, one asleep, and a reading every 500 ms. CPU is the kernel's account of all
 * threads of each process, those that have ended too.
 */
export async function idleCosts(ms: number, ways: readonly IdleWay[]): Promise<readonly IdleCost[]> {
  await using router = await startRouter({
    models: {
      'pipeline-9b': { shape: TINY_SHAPE },
      'bge-m3': { shape: TINY_SHAPE },
      'qwen-27b': { shape: MIDDLE_SHAPE, preset: { 'sleep-idle-seconds': 1 } },
    },
  });
  for (const model of ['pipeline-9b', 'bge-m3', 'qwen-27b']) await load(router, model);
  const options: ServeOptions = {
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: CARD_BYTES,
    footprints: {
      'pipeline-9b': { bytes: 10.6 * GB, rampMs: 0 },
      'bge-m3': { bytes: 1.2 * GB, rampMs: 0 },
      'qwen-27b': { bytes: 12 * GB, rampMs: 0 },
    },
    config: 'small: [pipeline-9b, bge-m3]\nidle: 10m',
  };
  // The first start after a change of the sources compiles them; from the second on that is kept.
  const first = await serveLandlord({ ...options, follow: false });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await first[Symbol.asyncDispose]();

  const costs: IdleCost[] = [];
  for (const way of ways) costs.push(await idleCost(ms, way, options));
  return costs;
}

async function idleCost(ms: number, way: IdleWay, options: ServeOptions): Promise<IdleCost> {
  await using landlord = await serveLandlord({ ...options, follow: way.isOpen ? 'window' : false });
  await landlord.model('router/qwen-27b', (model) => model.status === 'sleeping', 'asleep');
  await landlord.model('router/bge-m3', (model) => model.busy === false && model.pid !== null, 'idle');
  await register(landlord, way.agents);
  // The start's own work is over: what is compiled, read and asked once.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const children = lastingChildrenOf(landlord.pid);
  const pids = [landlord.pid, ...children];
  const before = pids.map(costOf);
  const beganAtMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const elapsedMs = performance.now() - beganAtMs;
  const after = pids.map(costOf);
  const { devices } = await landlord.state();
  const ageMs = Date.now() - Date.parse(devices[0]?.sampledAt ?? '');
  // On a busy machine a reading may be late; one this old means that nothing was read.
  if (!(ageMs < 10_000)) throw new Error(`the last reading is ${ageMs} ms old`);
  return { name: way.name, elapsedMs, before, after };
}

async function register(landlord: ServedLandlord, agents: number): Promise<void> {
  if (agents === 0) return;
  const path = await gguf(TALKER_SHAPE);
  using client = new SocketClient(join(landlord.stateDir, 'landlord.sock'));
  for (let agent = 0; agent < agents; agent += 1) {
    client.send(`REGISTER agent-${agent}\t${path}\tcontext=512\n`);
    const answer = (await client.line()) ?? 'the connection ended';
    if (!answer.startsWith('OK')) throw new Error(`agent ${agent}: ${answer}`);
  }
}

/** Without the one that asks llama.cpp about a new file: it comes once and goes. */
function lastingChildrenOf(pid: number): readonly number[] {
  return childrenOf(pid).filter(
    (child) =>
      !procfs()
        .command(child)
        ?.some((word) => /reference-child\.[jt]s$/.test(word)),
  );
}
