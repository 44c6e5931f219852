import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { hostFolder } from '../../electron/core/loop/agent-folders.ts';
import { type AgentsLandlord, startAgents } from '../support/agents-landlord.ts';
import { TALKER_SHAPE } from '../support/engine.ts';
import { seeded } from '../support/engine-agents.ts';
import { gguf } from '../support/gguf.ts';
import { until } from '../support/router.ts';
import { SocketClient } from '../support/socket-client.ts';

/** `LANDLORD_ROUGH=400` is a long form. */
const LINES = Number(process.env.LANDLORD_ROUGH ?? 40);
const CLIENTS = 6;
const AGENTS = 5;
const ENDS: Readonly<Record<string, string>> = { DECODE: 'END_RESPONSE', LIST: 'OK end' };

/** One line and its whole answer; null: the connection is closed. */
async function ask(client: SocketClient, line: string): Promise<string | null> {
  client.send(`${line}\n`);
  const first = await client.line();
  const end = ENDS[line.slice(0, line.indexOf(' '))] ?? ENDS[line];
  if (first?.startsWith('OK') === true && end !== undefined && first !== end)
    for (let next: string | null = ''; next !== null && next !== end; ) next = await client.line();
  if (line === 'STATUS') await client.line();
  return first;
}

function engines(): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  return children.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine-child');
    } catch {
      return false;
    }
  });
}

it('answers each line of many rough clients while engines die and others need the card, and keeps nothing', async () => {
  const random = seeded(7);
  const models = await Promise.all([11, 12, 13].map((seed) => gguf({ ...TALKER_SHAPE, seed })));
  await using landlord = await startAgents({
    totalBytes: 80_000_000,
    config: 'engine: { hostMemory: 1MB, files: 2MB, turnTokens: 16 }\n',
  });
  const name = (): string => `a${random(AGENTS)}`;
  const anyLine = (): string => {
    const what = random(10);
    if (what < 3)
      return `REGISTER ${name()}\t${models[random(3)]}\tcontext=512${random(3) === 0 ? ' class=batch' : ''}${random(4) === 0 ? ' bind' : ''}`;
    if (what < 8) return `DECODE ${name()} ${1 + random(40)} ${'xyz '.repeat(random(30))}`;
    if (what === 8) return `UNREGISTER ${name()}`;
    return random(2) === 0 ? 'STATUS' : 'LIST';
  };
  let asked = 0;
  let closed = 0;
  const visit = async (): Promise<void> => {
    using client = new SocketClient(landlord.socketPath);
    for (let count = 1 + random(6); count > 0; count -= 1) {
      const line = anyLine();
      asked += 1;
      // Every eighth hangs up in the middle.
      if (line.startsWith('DECODE') && random(8) === 0) {
        client.send(`${line}\n`);
        await sleep(random(40));
        return;
      }
      if ((await ask(client, line)) === null) closed += 1;
    }
  };
  const clients = Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (asked < LINES * CLIENTS) await visit();
    }),
  );
  const over = new AbortController();
  const rough = trouble(landlord, random, over.signal);
  await clients;
  over.abort();
  await rough;

  await landlord.uses(1_000_000);
  expect(closed).toBe(0);
  for (let at = 0; at < AGENTS; at += 1) await landlord.ask(`UNREGISTER a${at}`);
  await until(() => engines().length === 0, 20_000, 'the engine to be ended');
  const [device] = landlord.runtime.state().devices;
  expect([device?.bookedBytes, landlord.runtime.state().agents]).toEqual([0, []]);
  const state = dirname(landlord.socketPath);
  const left = [hostFolder(state), join(state, 'agents')].flatMap((dir) =>
    existsSync(dir) ? readdirSync(dir) : [],
  );
  expect(left).toEqual([]);
}, 300_000);

/** Kills engines, puts agents away, forgets them, and takes the card and gives it back. */
async function trouble(
  landlord: AgentsLandlord,
  random: (below: number) => number,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    await sleep(200 + random(800));
    const agent = `a${random(AGENTS)}`;
    switch (random(5)) {
      case 0:
        for (const pid of engines()) process.kill(pid, 'SIGKILL');
        break;
      case 1:
        await landlord.runtime.command({ type: 'unload', model: `engine/${agent}`, force: random(2) === 0 });
        break;
      case 2:
        await landlord.runtime.ask('forgetAgent', { agent });
        break;
      case 3:
        await landlord.uses(79_000_000);
        break;
      default:
        await landlord.uses(1_000_000);
    }
  }
}
