import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { LandlordState } from '../../../shared/state.ts';
import { startRuntime } from '../runtime.ts';
import * as story from './agents-story.ts';
import { LineClient } from './line-client.ts';
import { openTerminal } from './naive-terminal.ts';
import { SimulatedCard } from './simulated-card.ts';
import { NotAsTold, type Stage } from './stage.ts';
import { MIDDLE_SHAPE, type SyntheticShape, writeSyntheticGguf } from './synthetic-gguf.ts';

export interface AgentsDemoOptions {
  readonly signal: AbortSignal;
  readonly stage: Stage;
}

/** Room for one such load as a tutorial writes it, and for the weights of all three with one context. */
const CARD_BYTES = 230_000_000;
const DESKTOP_BYTES = 10_000_000;
/** What the naive loads reserve up front, and what an agent is registered with. */
const NAIVE_TOKENS = 32_768;
const AGENT_TOKENS = 8_192;
const ANSWER_TOKENS = 24;
const FIRST_READING_MS = 15_000;
const NAMES = ['llama', 'qwen', 'smol'] as const;

interface Cast {
  readonly folder: string;
  readonly card: SimulatedCard;
  readonly cardPath: string;
  readonly models: Readonly<Record<(typeof NAMES)[number], string>>;
}

/**
 * Three agents on a small simulated card: first each as a process of its own, as tutorials say, then all
 * three registered with the engine, over the ledger socket. The processes, models, loads and swaps are
 * real; only the card is played, and everything is gone in the end.
 *
 * Errors: `cancelled` (the signal), `internal` (something did not happen as told), those of the start.
 */
export async function runAgentsDemo({ signal, stage }: AgentsDemoOptions): Promise<Result<void>> {
  const parts = new AsyncDisposableStack();
  const cancelled = fail('cancelled', 'The demo was ended; all it had started is gone.');
  try {
    const cast = await gather(parts);
    stage.say(story.prologue({ totalBytes: CARD_BYTES, naiveTokens: NAIVE_TOKENS }));
    const alive = await naively(cast, stage, signal);
    if (signal.aborted) return cancelled;
    const done = await registered(cast, stage, signal, parts);
    if (signal.aborted) return cancelled;
    stage.say(story.ending({ alive, agents: NAMES.length, ...done }));
    return ok(undefined);
  } catch (thrown) {
    if (signal.aborted) return cancelled;
    return fail('internal', `This did not go as told: ${messageOf(thrown)}`);
  } finally {
    await parts.disposeAsync();
  }
}

async function gather(parts: AsyncDisposableStack): Promise<Cast> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-agents-'));
  parts.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const write = async (name: string, seed: number): Promise<string> => {
    const path = join(folder, `${name}.gguf`);
    const shape: SyntheticShape = { ...MIDDLE_SHAPE, contextTokens: NAIVE_TOKENS, seed };
    await writeSyntheticGguf(path, shape);
    return path;
  };
  const models = {
    llama: await write('llama', 4),
    qwen: await write('qwen', 5),
    smol: await write('smol', 6),
  };
  const cardPath = join(folder, 'card.json');
  const card = parts.use(
    new SimulatedCard({
      path: cardPath,
      name: 'A small old card (simulated)',
      totalBytes: CARD_BYTES,
      footprints: {},
      routerPid: () => null,
    }),
  );
  card.set({ name: 'desktop', bytes: DESKTOP_BYTES, type: 'G' });
  card.start();
  return { folder, card, cardPath, models };
}

/** Three terminals, a process in each; answers how many are alive in the end. */
async function naively(cast: Cast, stage: Stage, signal: AbortSignal): Promise<number> {
  stage.say([{ kind: 'act', text: 'Three terminals: a process for each agent' }]);
  await using terminals = new AsyncDisposableStack();
  let alive = 0;
  for (const [index, name] of NAMES.entries()) {
    if (signal.aborted) return alive;
    const terminal = await openTerminal({
      title: `llama-completion (agent ${index + 1}, ${name})`,
      path: cast.models[name],
      contextTokens: NAIVE_TOKENS,
      card: cast.card,
      signal,
    });
    if (!terminal.ok) throw new NotAsTold(terminal.error.message);
    terminals.use(terminal.value);
    stage.say(story.terminal({ name, index, ...terminal.value, card: cast.card.reading() }));
    if (terminal.value.missingBytes === null) alive += 1;
  }
  stage.say(story.afterTerminals(alive, cast.card.reading()));
  return alive;
}

interface Registered {
  readonly restored: number;
  readonly bookedBytes: number;
  readonly switchMs: number | null;
}

/** The same three over the socket. */
async function registered(
  cast: Cast,
  stage: Stage,
  signal: AbortSignal,
  parts: AsyncDisposableStack,
): Promise<Registered> {
  stage.say([{ kind: 'act', text: 'The same three, registered with the engine' }]);
  const configPath = join(cast.folder, 'config.yaml');
  await writeFile(
    configPath,
    `floor: 5MB\ndevices:\n  - { kind: simulated, path: ${JSON.stringify(cast.cardPath)} }\nbackends: []\n`,
  );
  const stateDir = join(cast.folder, 'state');
  const runtime = await startRuntime({
    configPath,
    stateDir,
    port: 0,
    discoverPorts: [],
    systemLog: false,
    pageDir: null,
    // The card is played, and the machine's own is not to be touched.
    engine: { gpu: 'cpu' },
  });
  if (!runtime.ok) throw new NotAsTold(runtime.error.message);
  parts.defer(() => runtime.value.stop());
  parts.defer(runtime.value.onState((state: LandlordState) => stage.live(state)));
  const socketPath = join(stateDir, 'landlord.sock');
  const client = parts.use(await LineClient.connect(socketPath, signal));
  await client.until(
    () => runtime.value.state().devices.some((one) => one.freeBytes !== null),
    FIRST_READING_MS,
  );
  const ask = async (line: string): Promise<readonly string[]> => {
    const answer = await client.ask(line);
    stage.say(story.exchange(line, answer));
    return answer;
  };
  stage.say(story.socket(socketPath));
  for (const name of [...NAMES].reverse())
    expectOk(await ask(`REGISTER ${name}\t${cast.models[name]}\tcontext=${AGENT_TOKENS}`));
  let restored = 0;
  const told = new Set<string>();
  for (const [name, prompt] of TURNS) {
    const answer = await ask(`DECODE ${name} ${ANSWER_TOKENS} ${prompt}`);
    expectOk(answer);
    if (answer.some((line) => line.includes('kv_swap_restored=true'))) restored += 1;
    stage.say(story.firstSwaps(name, answer, told));
  }
  if (restored === 0) throw new NotAsTold('no context had to be brought back');
  stage.say(story.beforeFigures());
  expectOk(await ask('STATUS'));
  expectOk(await ask('LIST'));
  const { devices, agents } = runtime.value.state();
  const last = agents.find((agent) => agent.agent === TURNS.at(-1)?.[0]);
  return { restored, bookedBytes: devices[0]?.bookedBytes ?? 0, switchMs: last?.lastSwitchMs ?? null };
}

const TURNS: readonly (readonly [(typeof NAMES)[number], string])[] = [
  ['smol', 'Hello, my name is'],
  ['qwen', 'The capital of France is'],
  ['llama', 'Once upon a time'],
  ['smol', 'and I live in'],
  ['qwen', 'which lies at'],
];

function expectOk(answer: readonly string[]): void {
  if (answer[0]?.startsWith('OK') !== true) throw new NotAsTold(answer[0] ?? 'the socket said nothing');
}
