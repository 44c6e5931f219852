import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SimulatedCard } from '../../electron/core/demo/simulated-card.ts';
import { TINY_SHAPE, writeSyntheticGguf } from '../../electron/core/demo/synthetic-gguf.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import type { LandlordState } from '../../shared/state.ts';
import { ensureLlamaServer } from '../fetch-llama-server.mjs';
import { ended, freePort, listen, residentBytes, within } from './rig-parts.ts';

const GB = 1_000_000_000;
export const TOTAL_BYTES = 24 * GB;
/** What each takes of the simulated card; all of them at once do not fit. */
export const MODELS: Readonly<Record<string, number>> = {
  'big-a': 9 * GB,
  'big-b': 9 * GB,
  middle: 6 * GB,
  little: 2 * GB,
};
/** The resident among them. */
export const SMALL = 'little';
const CLI = join(fileURLToPath(new URL('../..', import.meta.url)), 'electron/cli.ts');

/** What the runtime's process has. */
export interface Held {
  readonly residentBytes: number;
  readonly files: number;
  readonly databaseBytes: number;
}

export interface SoakRig extends AsyncDisposable {
  readonly url: string;
  readonly card: SimulatedCard;
  /** null while it runs. */
  exitCode(): number | null;
  configure(floor: string, idle: string): void;
  post(path: string, body?: unknown): Promise<Response>;
  /** Opens something and reads it until `signal`. */
  look(path: string, signal: AbortSignal): Promise<Response>;
  state(): Promise<LandlordState>;
  events(query: string): Promise<readonly LandlordEvent[]>;
  held(): Held;
}

/** A router over four models on a simulated card, a cloud of our own, and the runtime as a process before them. */
export async function startSoakRig(): Promise<SoakRig> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-soak-'));
  const children: ChildProcess[] = [];
  const cloud = http.createServer((asked, response) => {
    asked.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}');
    });
  });
  let card: SimulatedCard | null = null;
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await ended(child);
    card?.[Symbol.dispose]();
    cloud.closeAllConnections();
    await new Promise((resolve) => cloud.close(resolve));
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const gguf = join(folder, 'tiny.gguf');
    await writeSyntheticGguf(gguf, TINY_SHAPE);
    const presets = join(folder, 'models.ini');
    const sections = Object.keys(MODELS).map(
      (name) =>
        `[${name}]\nmodel = ${gguf}\nctx-size = ${TINY_SHAPE.contextTokens}\nparallel = 2\nmetrics = true\nstop-timeout = 5\n`,
    );
    writeFileSync(presets, `version = 1\n\n${sections.join('\n')}`);
    const llama = await ensureLlamaServer();
    const routerPort = await freePort();
    const router = spawn(
      llama.command,
      ['--host', '127.0.0.1', '--port', String(routerPort), '--models-preset', presets, '--no-ui'],
      { env: { ...process.env, ...llama.env, LLAMA_ARG_THREADS: '1' }, stdio: 'ignore' },
    );
    children.push(router);
    const cardFile = join(folder, 'card.json');
    const footprints = Object.entries(MODELS).map(([name, bytes]) => [name, { bytes, rampMs: 200 }] as const);
    card = new SimulatedCard({
      path: cardFile,
      name: 'Simulated card',
      totalBytes: TOTAL_BYTES,
      footprints: Object.fromEntries(footprints),
      routerPid: () => router.pid ?? null,
    });
    card.start();
    const cloudPort = await listen(cloud);
    const configFile = join(folder, 'config.yaml');
    const configure = (floor: string, idle: string): void => {
      const text = [
        `floor: ${floor}`,
        `idle: ${idle}`,
        `small: [${SMALL}]`,
        'agents:',
        '  writer: { onBusy: fallback }',
        '  reader: { onBusy: wait }',
        '  indexer: { class: batch, onBusy: wait }',
        'devices:',
        `  - { kind: simulated, path: ${JSON.stringify(cardFile)} }`,
        'backends:',
        `  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:${routerPort}", lanes: 1 }`,
        'fallbacks:',
        `  - { name: cloud, url: "http://127.0.0.1:${cloudPort}/v1" }`,
        'footprints:',
        ...Object.entries(MODELS).map(([name, bytes]) => `  ${name}: ${bytes}`),
        '',
      ].join('\n');
      writeFileSync(`${configFile}.new`, text);
      renameSync(`${configFile}.new`, configFile);
    };
    configure('2GB', '2s');
    const stateDir = join(folder, 'state');
    const port = await freePort();
    const runtime = spawn(
      process.execPath,
      [
        ...['--max-semi-space-size=2', '--disable-warning=ExperimentalWarning', CLI, 'serve'],
        ...['--config', configFile, '--state-dir', stateDir, '--port', String(port)],
      ],
      {
        env: { ...process.env, VRAM_LANDLORD_GATE_DIR: join(folder, 'gates') },
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    );
    children.push(runtime);
    const url = `http://127.0.0.1:${port}`;
    const token = (): string => readFileSync(join(stateDir, 'token'), 'utf8').trim();
    const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
      fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token()}`, ...init.headers } });
    const read = async <T>(path: string): Promise<T> => JSON.parse(await (await ask(path)).text());
    const rig: SoakRig = {
      url,
      card,
      exitCode: () => runtime.exitCode,
      configure,
      post: (path, body) =>
        ask(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body ?? {}),
        }),
      look: (path, signal) => ask(path, { signal }),
      state: () => read('/api/state'),
      events: (query) => read(`/api/events?json=1&${query}`),
      held: () => heldBy(runtime.pid ?? 0, stateDir),
      [Symbol.asyncDispose]: stop,
    };
    await within(
      async () => ((await rig.state()).models.length === Object.keys(MODELS).length ? true : null),
      'the runtime to see the models',
    );
    return rig;
  } catch (error) {
    await stop();
    throw error;
  }
}

function heldBy(pid: number, stateDir: string): Held {
  const databaseBytes = readdirSync(stateDir)
    .filter((name) => name.startsWith('landlord.db'))
    .reduce(
      (bytes, name) => bytes + (statSync(join(stateDir, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  return {
    residentBytes: residentBytes(pid),
    files: readdirSync(`/proc/${pid}/fd`).length,
    databaseBytes,
  };
}
