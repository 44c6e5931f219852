import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TINY_SHAPE, writeSyntheticGguf } from '../../electron/core/demo/synthetic-gguf.ts';
import { ensureLlamaServer } from '../fetch-llama-server.mjs';
import { answers, ended, freePort, listen, residentBytes, within } from './rig-parts.ts';

export const MODEL = 'tiny';
const CLI = join(fileURLToPath(new URL('../..', import.meta.url)), 'electron/cli.ts');

/** A real router behind the gateway, a cloud of our own, and a count of who generates at once. */
export interface ShowdownRig extends AsyncDisposable {
  readonly gatewayUrl: string;
  /** The backend as everybody knows it; the count stands before it. */
  readonly backendUrl: string;
  readonly gateDir: string;
  /** The most requests that generated at the same time. */
  mostAtOnce(): number;
  /** Requests that the cloud has answered. */
  cloudCount(): number;
  /** What the runtime has logged of one kind, oldest first. */
  events(kind: string): Promise<readonly { readonly reason: string; readonly session?: string }[]>;
  /** Resident bytes of the gateway's process. */
  gatewayBytes(): number;
  /** Starts a program under `landlord turn`, as a cron job would be; resolves to its exit code. */
  turn(session: string, script: string): Promise<number | null>;
}

export async function startShowdownRig(agents: string): Promise<ShowdownRig> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-showdown-'));
  const gateDir = join(folder, 'gates');
  const children = new Set<ChildProcess>();
  const servers: http.Server[] = [];
  const env = {
    ...process.env,
    VRAM_LANDLORD_GATE_DIR: gateDir,
    NODE_OPTIONS: '--disable-warning=ExperimentalWarning',
  };
  const run = (command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): ChildProcess => {
    const child = spawn(command, args, { env: { ...env, ...more }, stdio: ['ignore', 'ignore', 'ignore'] });
    children.add(child);
    child.once('exit', () => children.delete(child));
    return child;
  };
  const stop = async (): Promise<void> => {
    for (const child of [...children].toReversed()) await ended(child);
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const gguf = join(folder, 'tiny.gguf');
    await writeSyntheticGguf(gguf, TINY_SHAPE);
    const presets = join(folder, 'models.ini');
    writeFileSync(
      presets,
      `version = 1\n\n[${MODEL}]\nmodel = ${gguf}\nctx-size = ${TINY_SHAPE.contextTokens}\nparallel = 4\n`,
    );
    const llama = await ensureLlamaServer();
    const routerPort = await freePort();
    const router = `http://127.0.0.1:${routerPort}`;
    run(
      llama.command,
      ['--host', '127.0.0.1', '--port', String(routerPort), '--models-preset', presets, '--no-ui'],
      {
        ...llama.env,
        LLAMA_ARG_THREADS: '1',
      },
    );
    await answers(`${router}/models`);
    const count = countingProxy(router);
    servers.push(count.server);
    const backendUrl = `http://127.0.0.1:${await listen(count.server)}`;
    let cloudCount = 0;
    const cloud = http.createServer((asked, response) => {
      asked.resume();
      asked.on('end', () => {
        cloudCount += 1;
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    servers.push(cloud);
    const cloudPort = await listen(cloud);
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      [
        'devices:',
        '  - { kind: system }',
        'backends:',
        `  - { name: router, kind: llama.cpp, url: "${backendUrl}", lanes: 1 }`,
        'fallbacks:',
        `  - { name: cloud, url: "http://127.0.0.1:${cloudPort}/v1" }`,
        agents,
        '',
      ].join('\n'),
    );
    const stateDir = join(folder, 'state');
    const gatewayPort = await freePort();
    const landlord = run(process.execPath, [
      CLI,
      'serve',
      '--config',
      config,
      '--state-dir',
      stateDir,
      '--port',
      String(gatewayPort),
    ]);
    const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
    await within(async () => {
      const answer = await fetch(`${gatewayUrl}/v1/models`).catch(() => null);
      return answer?.ok === true && (await answer.text()).includes(`"${MODEL}"`) ? true : null;
    }, 'the gateway to list the model');
    const token = (): string => readFileSync(join(stateDir, 'token'), 'utf8').trim();
    return {
      gatewayUrl,
      backendUrl,
      gateDir,
      mostAtOnce: count.most,
      cloudCount: () => cloudCount,
      async events(kind) {
        const answer = await fetch(`${gatewayUrl}/api/events?json=1&kind=${kind}&limit=5000`, {
          headers: { authorization: `Bearer ${token()}` },
        });
        return JSON.parse(await answer.text());
      },
      gatewayBytes: () => residentBytes(landlord.pid ?? 0),
      turn(session, script) {
        const child = run(process.execPath, [
          ...[CLI, 'turn', '--backend', backendUrl, '--session', session, '--wait', '120', '--'],
          ...[process.execPath, '--input-type=module', '-e', script],
        ]);
        return new Promise((resolve) => child.once('exit', (code) => resolve(code)));
      },
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function countingProxy(target: string): { readonly server: http.Server; readonly most: () => number } {
  let now = 0;
  let most = 0;
  const server = http.createServer((asked, response) => {
    const generates = asked.method === 'POST' && asked.url?.includes('chat/completions') === true;
    let counts = generates;
    if (generates) {
      now += 1;
      most = Math.max(most, now);
    }
    const over = (): void => {
      if (counts) now -= 1;
      counts = false;
    };
    const { host: _host, ...headers } = asked.headers;
    const sent = http.request(`${target}${asked.url ?? '/'}`, { method: asked.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('end', over);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => {
      over();
      sent.destroy();
    });
    asked.pipe(sent);
  });
  return { server, most: () => most };
}
