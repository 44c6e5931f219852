import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { ensureLlamaServer, type LlamaServerBinary } from '../../build/fetch-llama-server.mjs';

/** The real llama-server, fetched when it is not here: no test that needs it is left out. */
export async function llamaServer(): Promise<LlamaServerBinary> {
  return await ensureLlamaServer();
}

/** A port of the loopback that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return address.port;
}

export interface RunningServer extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  readonly port: number;
  /** Last lines it wrote. */
  log(): string;
  /** Ends it (default SIGTERM, SIGKILL when that does not help) and resolves when it has exited. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts llama-server on the loopback and resolves when it answers `/health`, whatever it answers.
 * It and its children end with the returned handle. `threads` keeps a small machine usable.
 */
export async function startLlamaServer(
  args: readonly string[],
  options: { readonly port?: number; readonly threads?: number } = {},
): Promise<RunningServer> {
  const binary = await llamaServer();
  const port = options.port ?? (await freePort());
  const argv = ['--host', '127.0.0.1', '--port', String(port), '--no-ui', ...args];
  const child = spawn(binary.command, argv, {
    env: { ...process.env, ...binary.env, LLAMA_ARG_THREADS: String(options.threads ?? 1) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  const keep = (chunk: Buffer): void => {
    log = (log + chunk.toString('utf8')).slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const url = `http://127.0.0.1:${port}`;
  const end = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    const force = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await exited;
    clearTimeout(force);
  };
  await waitForAnswer(url, child, () => log);
  if (child.pid === undefined) throw new Error('llama-server has no pid');
  return { pid: child.pid, url, port, log: () => log, end, [Symbol.asyncDispose]: () => end() };
}

async function waitForAnswer(url: string, child: ChildProcess, log: () => string): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (child.exitCode !== null) break;
    const answer = await fetch(`${url}/health`).catch(() => null);
    if (answer !== null) {
      await answer.text();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill('SIGKILL');
  throw new Error(`llama-server did not start:\n${log().slice(-2_000)}`);
}
