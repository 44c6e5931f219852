import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Runtime, startRuntime } from '../../electron/core/runtime.ts';
import type { AgentState } from '../../shared/state.ts';
import { must } from './engine.ts';
import { until } from './router.ts';
import { SocketClient } from './socket-client.ts';

export interface AgentsLandlord extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly socketPath: string;
  /** A line and its whole answer. */
  ask(line: string): Promise<string[]>;
  /** What the model said, with the answer's other fields. */
  decode(agent: string, count: number, prompt: string): Promise<DecodeFields>;
  agent(name: string): AgentState;
  /** What others use of the card. */
  uses(bytes: number): Promise<void>;
  /** Stops the runtime and starts another over the same folders. */
  restart(): Promise<void>;
}

export interface DecodeFields {
  readonly fields: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface AgentsOptions {
  readonly totalBytes: number;
  readonly usedBytes?: number;
  /** As the config writes it; default 2MB. */
  readonly floor?: string;
  readonly config?: string;
  readonly gpu?: 'cpu' | 'vulkan';
}

/** A whole runtime with the real engine on the CPU, beside a simulated card that the ledger keeps. */
export async function startAgents(options: AgentsOptions): Promise<AgentsLandlord> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-agents-'));
  const card = join(folder, 'card.json');
  const { totalBytes, usedBytes = 1_000_000 } = options;
  const uses = async (bytes: number): Promise<void> => {
    await writeFile(
      `${card}.new`,
      JSON.stringify({ name: 'card', totalBytes, usedBytes: bytes, gttUsedBytes: 0 }),
    );
    await rename(`${card}.new`, card);
  };
  await uses(usedBytes);
  const configPath = join(folder, 'config.yaml');
  await writeFile(
    configPath,
    `floor: ${options.floor ?? '2MB'}\ndevices:\n  - { kind: simulated, path: ${JSON.stringify(card)} }\nbackends: []\n${options.config ?? ''}`,
  );
  const start = async (): Promise<Runtime> =>
    must(
      await startRuntime({
        configPath,
        stateDir: join(folder, 'state'),
        port: 0,
        discoverPorts: [],
        systemLog: false,
        pageDir: null,
        engine: { gpu: options.gpu ?? 'cpu', threads: 1 },
      }),
    );
  let runtime = await start();
  const socketPath = join(folder, 'state', 'landlord.sock');
  let client = new SocketClient(socketPath);
  const read = (): Promise<void> =>
    until(
      () => runtime.state().devices.some((device) => device.freeBytes !== null),
      30_000,
      'the first reading',
    );
  await read();
  const ask = async (line: string): Promise<string[]> => {
    client.send(`${line}\n`);
    const end = ENDS[line.split(' ')[0] ?? ''] ?? /^/;
    const lines: string[] = [];
    for (;;) {
      const next = await client.line();
      if (next === null) throw new Error(`the socket closed after ${line}`);
      lines.push(next);
      if (end.test(next) || (lines.length === 1 && next.startsWith('ERR'))) return lines;
    }
  };
  return {
    get runtime() {
      return runtime;
    },
    socketPath,
    uses,
    ask,
    async decode(agent, count, prompt) {
      return decodeFields(await ask(`DECODE ${agent} ${count} ${prompt}`));
    },
    agent(name) {
      const found = runtime.state().agents.find((agent) => agent.id === `engine/${name}`);
      if (found === undefined) throw new Error(`${name} is no agent of the state`);
      return found;
    },
    async restart() {
      client[Symbol.dispose]();
      await runtime.stop();
      runtime = await start();
      client = new SocketClient(socketPath);
      await read();
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await runtime.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const ENDS: Readonly<Record<string, RegExp>> = {
  DECODE: /^END_RESPONSE$/,
  LIST: /^OK end$/,
  HELP: /^OK end$/,
  STATUS: /^OK ledger_max_bytes/,
};

export function decodeFields(lines: readonly string[]): DecodeFields {
  if (lines[0]?.startsWith('OK') !== true) throw new Error(lines.join('\n'));
  const begin = lines.indexOf('BEGIN_RESPONSE');
  const fields = lines
    .slice(0, begin)
    .flatMap((line) => line.split(' ').slice(1))
    .map((word) => word.split('='));
  return {
    fields: Object.fromEntries(fields.map(([key = '', value = '']) => [key, value])),
    text: lines.slice(begin + 1, -1).join('\n'),
  };
}
