import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processTimes } from '../../electron/core/process/process-times.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import type { ServerInspector } from '../../electron/core/process/proof.ts';
import { gguf, type SyntheticShape } from './gguf.ts';
import { freePort, type RunningServer, startLlamaServer } from './llama-server.ts';

export interface RouterModel {
  readonly shape: SyntheticShape;
  readonly contextTokens?: number;
  readonly aliases?: readonly string[];
  /** Further keys of its preset, as llama-server names them: `sleep-idle-seconds`, `stop-timeout`, `metrics`. */
  readonly preset?: Readonly<Record<string, string | number | boolean>>;
}

export interface TestRouter extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: () => number;
  log(): string;
  /** Asks for an answer of `tokens` tokens, as any client would. */
  chat(model: string, request?: ChatRequest): RunningChat;
  /** The router's own word for a model's state, asked directly. */
  statusOf(model: string): Promise<string>;
  waitFor(model: string, status: string, limitMs?: number): Promise<void>;
  /** Ends the router's process; its children go with it. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again at the same address. */
  restart(): Promise<void>;
}

export interface ChatRequest {
  /** Letters in the prompt; one letter is one token. 28 000 keep a large model busy for many seconds. */
  readonly promptChars?: number;
  readonly tokens?: number;
}

export interface RunningChat {
  /** Status of the answer, or null when it was cut or cancelled. Never rejects. */
  readonly done: Promise<number | null>;
  cancel(): void;
}

export interface RouterOptions {
  readonly models: Readonly<Record<string, RouterModel>>;
  /** Default: no limit of its own. */
  readonly modelsMax?: number;
  readonly threads?: number;
  readonly args?: readonly string[];
}

/** A real router over synthetic models; everything it started ends when it is disposed of. */
export async function startRouter(options: RouterOptions): Promise<TestRouter> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-router-'));
  const presets = join(folder, 'models.ini');
  await writeFile(presets, await presetText(options.models));
  const port = await freePort();
  const args = ['--models-preset', presets, ...(options.args ?? [])];
  if (options.modelsMax !== undefined) args.push('--models-max', String(options.modelsMax));
  const start = (): Promise<RunningServer> => startLlamaServer(args, { port, threads: options.threads ?? 1 });
  let server = await start();
  const { url } = server;
  const chats = new Set<AbortController>();

  const statusOf = async (model: string): Promise<string> => {
    const answer = await fetch(`${url}/models`);
    const body: { data?: { id?: string; status?: { value?: string } }[] } = JSON.parse(await answer.text());
    return body.data?.find((entry) => entry.id === model)?.status?.value ?? 'not listed';
  };

  return {
    url,
    port,
    pid: () => server.pid,
    log: () => server.log(),
    statusOf,
    async waitFor(model, status, limitMs = 30_000) {
      await until(async () => (await statusOf(model)) === status, limitMs, `${model} to be ${status}`);
    },
    chat(model, request = {}) {
      const chat = startChat(url, model, request);
      chats.add(chat.controller);
      return { done: chat.done, cancel: () => chat.controller.abort() };
    },
    kill: (signal) => server.end(signal),
    async restart() {
      await server.end();
      server = await start();
    },
    async [Symbol.asyncDispose]() {
      for (const controller of chats) controller.abort();
      const children = procfs()
        .facts(procfs().pids())
        .filter((process) => process.parentPid === server.pid);
      await server.end();
      // A child that is deep in a prompt outlives its router for a while.
      for (const child of children) endIfSame(child.pid, child.startTimeTicks);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function endIfSame(pid: number, startTimeTicks: number): void {
  const [now] = procfs().facts([pid]);
  if (now?.startTimeTicks === startTimeTicks) process.kill(pid, 'SIGKILL');
}

async function presetText(models: Readonly<Record<string, RouterModel>>): Promise<string> {
  const sections: string[] = ['version = 1', ''];
  for (const [name, model] of Object.entries(models)) {
    sections.push(`[${name}]`, `model = ${await gguf(model.shape)}`);
    sections.push(`ctx-size = ${model.contextTokens ?? model.shape.contextTokens}`, 'parallel = 1');
    if (model.aliases !== undefined) sections.push(`alias = ${model.aliases.join(',')}`);
    for (const [key, value] of Object.entries(model.preset ?? {})) sections.push(`${key} = ${value}`);
    sections.push('');
  }
  return sections.join('\n');
}

function startChat(url: string, model: string, request: ChatRequest) {
  const controller = new AbortController();
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  const content = Array.from(
    { length: request.promptChars ?? 16 },
    (_, index) => letters[(index * 7 + Math.floor(index / 26)) % 26],
  ).join('');
  const done = fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    signal: controller.signal,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content }],
      max_tokens: request.tokens ?? 8,
      // Random weights end a sentence at random.
      ignore_eos: true,
      cache_prompt: false,
    }),
  }).then(
    async (answer) => {
      await answer.text().catch(() => '');
      return answer.status;
    },
    () => null,
  );
  return { controller, done };
}

/** Asks every 20 ms until it holds; throws with what was waited for when the limit is over. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  limitMs: number,
  what: string,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${limitMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Process facts straight from /proc, as the sampler child gives them. */
export function directInspector(): ServerInspector {
  const proc = procfs();
  return {
    find: async (query) => proc.find(query),
    facts: async (pids) => proc.facts(pids),
    times: processTimes,
  };
}
