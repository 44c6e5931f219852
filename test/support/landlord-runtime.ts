import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../electron/core/clock.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { type Runtime, type RuntimeOptions, startRuntime } from '../../electron/core/runtime.ts';
import type { Command, CommandDone } from '../../electron/core/runtime-api.ts';
import type { EventKind, LandlordEvent } from '../../shared/events.ts';
import type { ModelState } from '../../shared/state.ts';
import { until } from './router.ts';
import { SimulatedCard, type SimulatedFootprint, type SimulatedProgram } from './simulated-card.ts';

export interface LandlordBench extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly card: SimulatedCard;
  readonly events: LandlordEvent[];
  readonly folder: string;
  readonly configFile: string;
  readonly cardFile: string;
  /** Stops the runtime and starts another over the same config and state folder. */
  restart(): Promise<void>;
  /** A command that must succeed. */
  must(command: Command): Promise<CommandDone>;
  /** Waits until the card and the backend have been read once. */
  seen(): Promise<void>;
  model(id: string): ModelState;
  /** Waits until a model is seen in a status. */
  is(id: string, status: string, limitMs?: number): Promise<void>;
  /** The first event of a kind from `from` on (an index into `events`). */
  event(
    kind: EventKind,
    options?: { from?: number; model?: string; limitMs?: number },
  ): Promise<LandlordEvent>;
}

export interface BenchOptions {
  readonly routerUrl: string;
  readonly routerPid: () => number | null;
  readonly totalBytes: number;
  readonly footprints: Readonly<Record<string, SimulatedFootprint>>;
  /** Alias → how long its process is held at its start, as a slow disk would hold a 27B. */
  readonly slowDiskMs?: Readonly<Record<string, number>>;
  /** Further keys of the config, as YAML. */
  readonly config?: string;
  readonly backend?: string;
  /** Programs of the desktop that are there from the start. */
  readonly desktop?: readonly SimulatedProgram[];
  readonly pace?: RuntimeOptions['gatewayPace'];
  readonly units?: RuntimeOptions['units'];
  readonly lookEveryMs?: number;
  /** One that jumps, or stands still. */
  readonly clock?: Clock;
  /** How often the card looks for the models' processes; default 50 ms. */
  readonly cardTickMs?: number;
  /** Serves the built page at this port, also after a restart. */
  readonly pagePort?: number;
}

export interface StartedCard {
  readonly folder: string;
  readonly configFile: string;
  readonly cardFile: string;
  readonly card: SimulatedCard;
}

/** The card, and a folder with the config that names it and the router. */
export async function startCard(options: BenchOptions): Promise<StartedCard> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-bench-'));
  // In a folder of its own: the runtime watches the config's, and a real card writes nothing there.
  const cardFile = join(folder, 'card', 'card.json');
  await mkdir(join(folder, 'card'));
  const card = new SimulatedCard({
    path: cardFile,
    name: 'Simulated card',
    totalBytes: options.totalBytes,
    footprints: options.footprints,
    routerPid: options.routerPid,
    ...(options.cardTickMs === undefined ? {} : { tickMs: options.cardTickMs }),
    onChild(alias, pid) {
      const ms = options.slowDiskMs?.[alias];
      if (ms !== undefined) holdBack(pid, ms);
    },
  });
  for (const program of options.desktop ?? []) card.set(program);
  card.start();
  const configFile = join(folder, 'config.yaml');
  const figures = Object.entries(options.footprints).map(([name, { bytes }]) => `  ${name}: ${bytes}`);
  await writeFile(
    configFile,
    [
      'devices:',
      `  - { kind: simulated, path: ${JSON.stringify(cardFile)} }`,
      'backends:',
      options.backend ?? `  - { name: router, kind: llama.cpp, url: "${options.routerUrl}" }`,
      'footprints:',
      ...figures,
      options.config ?? '',
      '',
    ].join('\n'),
  );
  return { folder, configFile, cardFile, card };
}

/** The whole runtime, over a simulated card whose memory real llama-server processes hold. */
export async function startLandlordBench(options: BenchOptions): Promise<LandlordBench> {
  const { folder, configFile, cardFile, card } = await startCard(options);
  const events: LandlordEvent[] = [];
  const start = async (): Promise<Runtime> => {
    const started = await startRuntime({
      configPath: configFile,
      stateDir: join(folder, 'state'),
      port: options.pagePort ?? 0,
      ...(options.pagePort === undefined ? { pageDir: null } : {}),
      discoverPorts: [],
      systemLog: false,
      ...(options.pace === undefined ? {} : { gatewayPace: options.pace }),
      ...(options.units === undefined ? {} : { units: options.units }),
      ...(options.lookEveryMs === undefined ? {} : { lookEveryMs: options.lookEveryMs }),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    });
    if (!started.ok) throw new Error(started.error.message);
    started.value.onEvent((event) => events.push(event));
    return started.value;
  };
  let runtime = await start();
  const find = (id: string): ModelState | undefined =>
    runtime.state().models.find((model) => model.id === id);
  return {
    get runtime() {
      return runtime;
    },
    cardFile,
    async restart() {
      await runtime.stop();
      runtime = await start();
    },
    async must(command) {
      const done = await runtime.command(command);
      if (!done.ok) throw new Error(`${command.type}: ${done.error.message}`);
      return done.value;
    },
    card,
    events,
    folder,
    configFile,
    seen: () =>
      until(
        () => {
          const { devices, backends } = runtime.state();
          return (
            devices.some((device) => device.freeBytes !== null) &&
            backends.every((one) => one.status === 'up')
          );
        },
        15_000,
        'the first reading',
      ),
    model(id) {
      const model = find(id);
      if (model === undefined) throw new Error(`${id} is not in the state`);
      return model;
    },
    is: (id, status, limitMs = 30_000) =>
      until(() => find(id)?.status === status, limitMs, `${id} to be ${status} (it is ${find(id)?.status})`),
    async event(kind, { from = 0, model, limitMs = 30_000 } = {}) {
      const look = (): LandlordEvent | undefined =>
        events.slice(from).find((one) => one.kind === kind && (model === undefined || one.model === model));
      await until(() => look() !== undefined, limitMs, `the event ${kind}`);
      const found = look();
      if (found === undefined) throw new Error(`no event ${kind}`);
      return found;
    },
    async [Symbol.asyncDispose]() {
      await runtime.stop();
      card[Symbol.dispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Stops a process of ours and lets it go on; one that was ended meanwhile is left alone. */
function holdBack(pid: number, ms: number): void {
  const startTimeTicks = procfs().stat(pid)?.startTimeTicks;
  process.kill(pid, 'SIGSTOP');
  setTimeout(() => {
    if (procfs().stat(pid)?.startTimeTicks === startTimeTicks) process.kill(pid, 'SIGCONT');
  }, ms);
}
