import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ok, type Result } from '../../../shared/errors.ts';
import type { EventKind, LandlordEvent } from '../../../shared/events.ts';
import type { DeviceState, LandlordState, ModelState } from '../../../shared/state.ts';
import { type Runtime, startRuntime } from '../runtime.ts';
import {
  BACKEND,
  BIG,
  CARD_BYTES,
  CARD_NAME,
  configText,
  DESKTOP,
  presetsText,
  ROLES,
  type Role,
} from './cast.ts';
import { holdUp, see, signal } from './children.ts';
import { type Answer, type DemoRouter, type LlamaServer, startDemoRouter } from './demo-router.ts';
import { SimulatedCard } from './simulated-card.ts';
import { NotAsTold } from './stage.ts';
import { ensureSyntheticGguf, type SyntheticShape } from './synthetic-gguf.ts';

/** A load goes on this long after the card has given it its memory. */
const AFTER_BUFFER_MS = 60;
const POLL_MS = 20;

export interface Refusal {
  readonly model: string;
  readonly missingBytes: number;
}

/** Everything the demo plays with: all of it real but the card, and all of it gone when disposed of. */
export interface DemoWorld extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly router: DemoRouter;
  /** Bytes of a program of the simulated desktop. */
  desktop(change: Partial<Record<'compositor' | 'browser' | 'player', number>>): void;
  /** The runtime's own reading of the card. */
  device(): DeviceState;
  model(name: string): ModelState;
  /** Loads the card had no memory for, as it refused them. */
  readonly refusals: readonly Refusal[];
  /** Events so far; a place in it is where a wait begins. */
  readonly events: readonly LandlordEvent[];
  /** The first such event from `from` on. Throws NotAsTold with `what` when it does not come. */
  event(
    from: number,
    kinds: readonly EventKind[],
    model: string | null,
    limitMs: number,
  ): Promise<LandlordEvent>;
  /** Throws NotAsTold with `what` when it does not hold in time, and when the demo is ended. */
  until(holds: () => boolean, limitMs: number, what: string): Promise<void>;
  wait(ms: number): Promise<void>;
  /** An answer of `model` that was asked for. Throws NotAsTold when it does not come in time. */
  answered(asked: Promise<Answer>, limitMs: number, model: string): Promise<Answer>;
}

export async function buildWorld(options: {
  readonly server: LlamaServer | null;
  readonly port: number | null;
  readonly signal: AbortSignal;
  readonly onState: (state: LandlordState) => void;
}): Promise<Result<DemoWorld>> {
  const parts = new AsyncDisposableStack();
  try {
    const built = await assemble(options, parts);
    if (built.ok) return ok(withDispose(built.value, parts.move()));
    return built;
  } finally {
    await parts.disposeAsync();
  }
}

type Parts = Omit<DemoWorld, typeof Symbol.asyncDispose>;

function withDispose(parts: Parts, stack: AsyncDisposableStack): DemoWorld {
  return Object.assign(parts, { [Symbol.asyncDispose]: () => stack.disposeAsync() });
}

async function assemble(
  options: Parameters<typeof buildWorld>[0],
  parts: AsyncDisposableStack,
): Promise<Result<Parts>> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-demo-'));
  parts.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const presetsPath = join(folder, 'models.ini');
  if (options.server !== null) await writePresets(folder, presetsPath);
  const models = ROLES.map((role) => role.name);
  const router = await startDemoRouter({
    server: options.server,
    presetsPath,
    models,
    signal: options.signal,
  });
  if (!router.ok) return router;
  parts.use(router.value);

  const refusals: Refusal[] = [];
  const cardPath = join(folder, 'card.json');
  const card = parts.use(newCard(cardPath, router.value.pid, refusals));
  const desktop: DemoWorld['desktop'] = (change) => {
    for (const [name, bytes] of Object.entries(change))
      card.set({ name: name === 'player' ? 'music-player' : name, bytes, type: 'G' });
  };
  desktop({ compositor: DESKTOP.compositor, browser: DESKTOP.browser, player: DESKTOP.player });
  card.start();

  const configPath = join(folder, 'config.yaml');
  await writeFile(configPath, configText(cardPath, router.value.url));
  const runtime = await startRuntime({
    configPath,
    stateDir: join(folder, 'state'),
    port: options.port ?? 0,
    discoverPorts: [],
    systemLog: false,
  });
  if (!runtime.ok) return runtime;
  parts.defer(() => runtime.value.stop());
  const events: LandlordEvent[] = [];
  parts.defer(runtime.value.onEvent((event) => void events.push(event)));
  parts.defer(runtime.value.onState(options.onState));
  const world = worldOf(runtime.value, router.value, desktop, refusals, events, options.signal);
  await world.until(
    () => isSeen(runtime.value.state()),
    15_000,
    'VRAM Landlord does not see the card and its router',
  );
  return ok(world);
}

async function writePresets(folder: string, presetsPath: string): Promise<void> {
  const paths = new Map<SyntheticShape, string>();
  for (const { shape } of ROLES)
    if (!paths.has(shape)) paths.set(shape, await ensureSyntheticGguf(folder, shape));
  await writeFile(
    presetsPath,
    presetsText((shape) => paths.get(shape) ?? ''),
  );
}

function newCard(path: string, routerPid: number, refusals: Refusal[]): SimulatedCard {
  const roleOf = (alias: string): Role | undefined => ROLES.find((role) => role.name === alias);
  return new SimulatedCard({
    path,
    name: CARD_NAME,
    totalBytes: CARD_BYTES,
    footprints: Object.fromEntries(ROLES.map((role) => [role.name, role])),
    routerPid: () => routerPid,
    moves: 'whole models',
    tickMs: 20,
    onChild(alias, pid) {
      const bufferAtMs = roleOf(alias)?.bufferAtMs;
      if (bufferAtMs !== undefined) holdUp(pid, bufferAtMs + AFTER_BUFFER_MS);
    },
    // As llama-server ends itself on `unable to allocate ROCm0 buffer`.
    onAllocationFailed(alias, pid, missingBytes) {
      refusals.push({ model: alias, missingBytes });
      const child = see(pid);
      if (child !== null) signal(child, 'SIGKILL');
    },
  });
}

function isSeen(state: LandlordState): boolean {
  const [device] = state.devices;
  return (
    device !== undefined &&
    device.freeBytes !== null &&
    state.models.some((model) => model.id === idOf(BIG.name) && model.predictedBytes !== null)
  );
}

export function idOf(model: string): string {
  return `${BACKEND}/${model}`;
}

function worldOf(
  runtime: Runtime,
  router: DemoRouter,
  desktop: DemoWorld['desktop'],
  refusals: readonly Refusal[],
  events: readonly LandlordEvent[],
  stop: AbortSignal,
): Parts {
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve, reject) => {
      if (stop.aborted) return reject(new NotAsTold('the demo was ended'));
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(new NotAsTold('the demo was ended'));
      };
      const timer = setTimeout(() => {
        stop.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      stop.addEventListener('abort', onAbort, { once: true });
    });
  const until = async (holds: () => boolean, limitMs: number, what: string): Promise<void> => {
    const end = performance.now() + limitMs;
    while (!holds()) {
      if (performance.now() > end) throw new NotAsTold(what);
      await wait(POLL_MS);
    }
  };
  return {
    runtime,
    router,
    desktop,
    refusals,
    events,
    wait,
    until,
    async answered(asked, limitMs, model) {
      let answer: Answer | null = null;
      void asked.then((value) => {
        answer = value;
      });
      await until(() => answer !== null, limitMs, `${model} did not answer within ${limitMs / 1000} s`);
      return asked;
    },
    device() {
      const [device] = runtime.state().devices;
      if (device === undefined) throw new NotAsTold('the simulated card can not be read');
      return device;
    },
    model(name) {
      const model = runtime.state().models.find((one) => one.id === idOf(name));
      if (model === undefined) throw new NotAsTold(`${name} is not listed by its router`);
      return model;
    },
    async event(from, kinds, model, limitMs) {
      const find = (): LandlordEvent | undefined =>
        events
          .slice(from)
          .find((one) => kinds.includes(one.kind) && (model === null || one.model === idOf(model)));
      await until(
        () => find() !== undefined,
        limitMs,
        `no event ${kinds.join(' or ')}${model === null ? '' : ` of ${model}`} came`,
      );
      const found = find();
      if (found === undefined) throw new NotAsTold('an event was lost');
      return found;
    },
  };
}
