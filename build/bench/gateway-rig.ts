import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SyntheticShape, writeSyntheticGguf } from '../../electron/core/demo/synthetic-gguf.ts';
import { ensureLlamaServer } from '../fetch-llama-server.mjs';
import { answers, freePort, residentBytes, within } from './rig-parts.ts';

export const MODEL = 'synthetic';
/** As many as the lane is wide. */
export const SLOTS = 8;

/** One way to the same llama-server child. */
export interface Way {
  readonly name: string;
  readonly origin: string;
  /** Its one process, whose running time can be told; null: none of its own, or several. */
  readonly pid: number | null;
}

export interface GatewayRig extends AsyncDisposable {
  readonly ways: readonly Way[];
  readonly notes: readonly string[];
  /** Resident bytes of the process that serves the gateway. */
  gatewayBytes(): number;
}

/** As `landlord` starts its runtime; the plain proxies have the same. */
const YOUNG_GENERATION = '--max-semi-space-size=2';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A router with one loaded model of that shape, and before its child: nothing, the router, two plain proxies, nginx, the gateway. */
export async function startRig(shape: SyntheticShape): Promise<GatewayRig> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-gateway-'));
  const children: ChildProcess[] = [];
  const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child.stdout?.resume();
    children.push(child);
    return child;
  };
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const force = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await ended;
      clearTimeout(force);
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const gguf = join(folder, `${MODEL}.gguf`);
    await writeSyntheticGguf(gguf, shape);
    const presets = join(folder, 'models.ini');
    const keys = [`model = ${gguf}`, `ctx-size = ${2048 * SLOTS}`, `parallel = ${SLOTS}`];
    writeFileSync(presets, `version = 1\n\n[${MODEL}]\n${keys.join('\n')}\n`);
    const server = await ensureLlamaServer();
    const routerPort = await freePort();
    const routerProcess = run(
      server.command,
      ['--host', '127.0.0.1', '--port', String(routerPort), '--models-preset', presets, '--no-ui'],
      { ...server.env, LLAMA_ARG_THREADS: '1' },
    );
    const router = `http://127.0.0.1:${routerPort}`;
    await answers(`${router}/models`);
    const direct = `http://127.0.0.1:${await loadedChild(router)}`;

    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${direct}", lanes: ${SLOTS} }\n`,
    );
    const gatewayPort = await freePort();
    const landlord = run(
      process.execPath,
      [
        YOUNG_GENERATION,
        '--disable-warning=ExperimentalWarning',
        join(ROOT, 'electron/cli.ts'),
        'serve',
        '--config',
        config,
        '--state-dir',
        join(folder, 'state'),
        '--port',
        String(gatewayPort),
      ],
      { VRAM_LANDLORD_GATE_DIR: join(folder, 'gates') },
    );
    const gateway = `http://127.0.0.1:${gatewayPort}`;
    await listsModel(`${gateway}/v1/models`);

    const plain = async (how: string): Promise<Omit<Way, 'name'>> => {
      const child = run(process.execPath, [
        YOUNG_GENERATION,
        '--disable-warning=ExperimentalWarning',
        join(ROOT, 'build/bench/plain-proxy.ts'),
        direct,
        how,
      ]);
      return { origin: `http://127.0.0.1:${await freePortOf(child)}`, pid: child.pid ?? null };
    };
    const ways: Way[] = [
      { name: 'direct', origin: direct, pid: null },
      { name: 'llama.cpp router', origin: router, pid: routerProcess.pid ?? null },
      { name: 'plain undici proxy', ...(await plain('request')) },
      { name: 'the same by undici.stream', ...(await plain('stream')) },
      { name: 'gateway, lane and admission on', origin: gateway, pid: landlord.pid ?? null },
    ];
    const notes: string[] = [];
    const nginx = nginxProgram();
    if (nginx === null)
      notes.push(
        'nginx is not installed here, so it was not measured: `apt-get install -y nginx-light` as root gets it.',
      );
    else {
      const served = await startNginx(run, nginx, folder, direct);
      ways.splice(2, 0, { name: 'nginx', origin: served, pid: null });
    }
    return {
      ways,
      notes,
      gatewayBytes: () => residentBytes(landlord.pid ?? 0),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function nginxProgram(): string | null {
  for (const program of ['nginx', '/usr/sbin/nginx'])
    if (spawnSync(program, ['-v'], { stdio: 'ignore' }).status === 0) return program;
  return null;
}

async function startNginx(
  run: (command: string, args: readonly string[]) => ChildProcess,
  program: string,
  folder: string,
  origin: string,
): Promise<string> {
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${folder}/nginx.pid; error_log /dev/null; worker_processes 1; events {}
http { access_log off; client_max_body_size 64m; client_body_temp_path ${folder}; proxy_temp_path ${folder};
fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
upstream child { server ${new URL(origin).host}; keepalive 16; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://child; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_buffering off; } } }\n`,
  );
  run(program, ['-c', file, '-p', folder]);
  await answers(`http://127.0.0.1:${port}/health`);
  return `http://127.0.0.1:${port}`;
}

/** Has the router load the model, and resolves to its child's port. */
async function loadedChild(router: string): Promise<number> {
  await fetch(`${router}/models/load`, { method: 'POST', body: JSON.stringify({ model: MODEL }) });
  return within(async () => {
    const list: { data?: { id?: string; status?: { value?: string; args?: string[] } }[] } = JSON.parse(
      await (await fetch(`${router}/models`)).text(),
    );
    const status = list.data?.find((entry) => entry.id === MODEL)?.status;
    if (status?.value !== 'loaded') return null;
    const port = Number(status.args?.[status.args.indexOf('--port') + 1]);
    return Number.isInteger(port) ? port : null;
  }, 'the model to be loaded');
}

async function listsModel(url: string): Promise<void> {
  await within(async () => {
    const answer = await fetch(url).catch(() => null);
    return answer?.ok === true && (await answer.text()).includes(`"${MODEL}"`) ? true : null;
  }, 'the gateway to list the model');
}

function freePortOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', (line) => resolve(Number(String(line).trim())));
    child.once('exit', () => reject(new Error('the plain proxy did not start')));
  });
}
