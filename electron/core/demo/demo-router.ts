import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { field } from '../backends/http.ts';
import { childrenOf, gone, see, signal } from './children.ts';

/** A llama-server that can be started; `env` is laid over the environment. */
export interface LlamaServer {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
  readonly version: string;
}

/** How a request ended for whoever sent it. */
export interface Answer {
  /** null: the connection was cut. */
  readonly status: number | null;
  /** What the server said was wrong; null: nothing. */
  readonly error: string | null;
  readonly tookMs: number;
}

export interface DemoRouter extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** Asks a model as any client would; the router loads it when it is not there. Never rejects. */
  ask(model: string, promptChars: number): Promise<Answer>;
  load(model: string): Promise<void>;
  unload(model: string): Promise<void>;
}

const START_LIMIT_MS = 15_000;
const STAND_IN = fileURLToPath(new URL('./stand-in-router.ts', import.meta.url));

/** The real router over `presetsPath`, or the stand-in where there is no llama-server. */
export async function startDemoRouter(options: {
  readonly server: LlamaServer | null;
  readonly presetsPath: string;
  readonly models: readonly string[];
  readonly signal: AbortSignal;
}): Promise<Result<DemoRouter>> {
  const port = await freePort();
  const child = start(options, port);
  let log = '';
  const keep = (chunk: Buffer): void => {
    log = (log + chunk.toString('utf8')).slice(-2_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const failed = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code) => resolve(`it ended with ${code ?? 'a signal'}: ${log.trim().slice(-300)}`));
  });
  const url = `http://127.0.0.1:${port}`;
  const why = await Promise.race([failed, answering(url, options.signal)]);
  const { pid } = child;
  if (why === null && pid !== undefined) return ok(routerAt(url, pid, child));
  if (pid !== undefined) await end(child, pid);
  return fail('backend_unreachable', `The demo's llama.cpp router did not start: ${why ?? 'no pid'}`);
}

function start(options: Parameters<typeof startDemoRouter>[0], port: number): ChildProcess {
  const { server } = options;
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  if (server === null) {
    const args = [...process.execArgv, STAND_IN, '--port', String(port), '--models', options.models.join()];
    // By its name it is known as a llama.cpp router.
    return spawn(process.execPath, args, { argv0: 'llama-server', stdio });
  }
  const args = [
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--models-preset',
    options.presetsPath,
    '--no-ui',
  ];
  if (!hasSetpriv()) return spawn(server.command, args, { env: { ...process.env, ...server.env }, stdio });
  // Should the demo itself be killed, its router goes with it. Both helpers become the next program and
  // keep the pid; the server's own C library is for the server alone, so it is set by the last of them.
  const variables = Object.entries(server.env).map(([name, value]) => `${name}=${value}`);
  return spawn('setpriv', ['--pdeathsig', 'KILL', 'env', ...variables, server.command, ...args], { stdio });
}

function hasSetpriv(): boolean {
  return spawnSync('setpriv', ['--version'], { stdio: 'ignore' }).status === 0;
}

function routerAt(url: string, pid: number, child: ChildProcess): DemoRouter {
  const asking = new AbortController();
  const post = (path: string, body: unknown): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: asking.signal,
    });
  return {
    url,
    pid,
    async ask(model, promptChars) {
      const startedAtMs = performance.now();
      const took = (): number => performance.now() - startedAtMs;
      try {
        const answer = await post('/v1/chat/completions', chatBody(model, promptChars));
        const text = await answer.text();
        return { status: answer.status, error: answer.ok ? null : errorIn(text), tookMs: took() };
      } catch (thrown) {
        return { status: null, error: messageOf(thrown), tookMs: took() };
      }
    },
    load: (model) => post('/models/load', { model }).then(drain, () => undefined),
    unload: (model) => post('/models/unload', { model }).then(drain, () => undefined),
    async [Symbol.asyncDispose]() {
      asking.abort();
      await end(child, pid);
    },
  };
}

async function drain(answer: Response): Promise<void> {
  await answer.text().catch(() => undefined);
}

/** The router first, so that it starts nothing anew; its children may be stopped or deep in a prompt. */
async function end(child: ChildProcess, pid: number): Promise<void> {
  const router = see(pid);
  const children = childrenOf(pid);
  if (router !== null && child.exitCode === null) signal(router, 'SIGKILL');
  const late = router === null ? [] : childrenOf(pid);
  const all = [...children, ...late];
  for (const one of all) signal(one, 'SIGKILL');
  await gone(router === null ? all : [router, ...all], 3_000);
}

function chatBody(model: string, promptChars: number): unknown {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  const content = Array.from({ length: promptChars }, (_, at) => letters[(at * 7) % 26]).join('');
  return {
    model,
    messages: [{ role: 'user', content }],
    max_tokens: 8,
    // Random weights end a sentence at random.
    ignore_eos: true,
    cache_prompt: false,
  };
}

function errorIn(text: string): string | null {
  try {
    const message = field(field(JSON.parse(text), 'error'), 'message');
    return typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}

/** null: it answers. */
async function answering(url: string, stop: AbortSignal): Promise<string | null> {
  const end = performance.now() + START_LIMIT_MS;
  while (performance.now() < end && !stop.aborted) {
    const answer = await fetch(`${url}/health`).catch(() => null);
    if (answer !== null) {
      await answer.text();
      return null;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return stop.aborted ? 'the demo was ended' : 'it did not answer within 15 s';
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return address === null || typeof address === 'string' ? 0 : address.port;
}
