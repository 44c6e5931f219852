import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../electron/core/clock.ts';
import { EngineDesk } from '../../electron/core/engine/desk/desk.ts';
import type { DecodeAnswer, DeskResult, RegisterRequest } from '../../electron/core/engine/desk/desk-api.ts';
import type { DeskPolicy, DeskWorld } from '../../electron/core/engine/desk/desk-world.ts';
import { StateFiles } from '../../electron/core/engine/desk/state-files.ts';
import type { TurnLimits } from '../../electron/core/engine/desk/turns.ts';
import type { EngineHost } from '../../electron/core/engine/engine-host.ts';
import { checkInvariants } from '../../electron/core/ledger/invariants.ts';
import { Ledger } from '../../electron/core/ledger/ledger.ts';
import { ok } from '../../shared/errors.ts';
import type { NewEvent } from '../../shared/events.ts';
import { StandInEngine, type StandInOptions } from './engine-stand-in.ts';

export const DEVICE = 'sim:0';
export const MB = 1_000_000;

export interface DeskBench extends AsyncDisposable {
  readonly desk: EngineDesk;
  readonly engine: StandInEngine;
  readonly ledger: Ledger;
  readonly events: NewEvent[];
  /** Files that the gateway serves too. */
  readonly elsewhere: Set<string>;
  readonly facts: Map<string, unknown>;
  readonly folder: string;
  policy: DeskPolicy;
  /** What models would give when asked. */
  roomToMake: (() => void | Promise<void>) | null;
  free(bytes: number): void;
  /** A desk over the same files and facts, as after a restart. */
  again(isKnown?: boolean): Promise<EngineDesk>;
  /** What is wrong with the book; empty: nothing. */
  wrong(): string[];
}

export interface DeskBenchOptions {
  readonly capBytes: number;
  readonly weightsBytes?: number;
  readonly contextBytes?: number;
  readonly overheadBytes?: number;
  readonly hostBudgetBytes?: number;
  readonly fileBudgetBytes?: number;
  readonly limits?: Partial<TurnLimits>;
  readonly engine?: StandInOptions;
  /** In place of the stand-in. */
  readonly host?: EngineHost;
  readonly estimate?: DeskWorld['estimate'];
  readonly clock?: Clock;
}

const NEVER = new AbortController().signal;

/** A desk over a ledger of its own and an engine without models. */
export async function deskBench(options: DeskBenchOptions): Promise<DeskBench> {
  const { capBytes, weightsBytes = 100 * MB, contextBytes = 50 * MB, overheadBytes = 0 } = options;
  const folder = await mkdtemp(join(tmpdir(), 'landlord-desk-'));
  const ledger = new Ledger();
  const totalBytes = 100_000 * MB;
  ledger.setLimits(DEVICE, { totalBytes, capBytes, floorBytes: 10 * MB, hardFloorBytes: 5 * MB });
  const free = (bytes: number): void => {
    ledger.reconcile(DEVICE, {
      driverFreeBytes: bytes,
      hostAvailableBytes: null,
      totalBytes,
      unified: false,
      sampledAtMs: systemClock.monotonicMs(),
    });
  };
  free(totalBytes);
  const engine = new StandInEngine({ contextBytes, weightsBytes: () => weightsBytes, ...options.engine });
  const events: NewEvent[] = [];
  const facts = new Map<string, unknown>();
  const elsewhere = new Set<string>();
  const state: { policy: DeskPolicy; roomToMake: DeskBench['roomToMake'] } = {
    policy: { draining: false, asleep: false, isBig: () => true },
    roomToMake: null,
  };
  const world: DeskWorld = {
    host: options.host ?? engine,
    ledger,
    clock: options.clock ?? systemClock,
    estimate:
      options.estimate ??
      (async ({ gpuLayers, contextTokens }) => {
        const share = gpuLayers === null ? 1 : gpuLayers / 4;
        return ok({
          weightsBytes: weightsBytes * share,
          kvBytes: contextBytes,
          recurrentBytes: 0,
          computeBytes: 0,
          overheadBytes,
          totalBytes: weightsBytes * share + contextBytes + overheadBytes,
          layers: 4,
          kvLayers: 4,
          contextTokens: contextTokens ?? 4096,
          notes: [],
        });
      }),
    device: async () => ok({ id: DEVICE, name: 'Simulated card', kind: 'cuda', unified: false }),
    devices: () => [DEVICE],
    engineIdle: async () => undefined,
    makeRoom: async () => {
      if (state.roomToMake === null) return false;
      await state.roomToMake();
      return true;
    },
    bookedElsewhere: (path) => elsewhere.has(path),
    reading: async () => undefined,
    advice: () => '',
    policy: () => state.policy,
    usualContextTokens: () => 4_096,
    classOf: () => 'interactive',
    tell: (event) => events.push(event),
    changed: () => undefined,
    realPath: async (path) => (path.includes('missing') ? null : path),
  };
  const files = (): StateFiles =>
    new StateFiles({
      hostDir: join(folder, 'host'),
      fileDir: join(folder, 'file'),
      hostBudgetBytes: options.hostBudgetBytes ?? 1000 * MB,
      fileBudgetBytes: options.fileBudgetBytes ?? 1000 * MB,
      roomBytes: async () => null,
    });
  const store = {
    all: async (prefix: string) =>
      Object.fromEntries(
        [...facts].filter(([key]) => key.startsWith(prefix)).map(([key, value]) => [key, value]),
      ),
    set: async (key: string, value: unknown) => {
      // As a store on disk would keep it.
      if (value === undefined) facts.delete(key);
      else facts.set(key, JSON.parse(JSON.stringify(value)));
    },
  };
  const open = async (isKnown = true): Promise<EngineDesk> => {
    const desk = new EngineDesk({ world, files: files(), store, limits: () => options.limits ?? {} });
    await desk.open(isKnown);
    return desk;
  };
  return {
    desk: await open(),
    engine,
    ledger,
    events,
    elsewhere,
    facts,
    folder,
    get policy() {
      return state.policy;
    },
    set policy(policy) {
      state.policy = policy;
    },
    get roomToMake() {
      return state.roomToMake;
    },
    set roomToMake(give) {
      state.roomToMake = give;
    },
    free,
    again: open,
    wrong: () => checkInvariants(ledger.snapshot()),
    async [Symbol.asyncDispose]() {
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Registers for good, or says why not. */
export async function register(
  desk: EngineDesk,
  agent: string,
  path = `/models/${agent}.gguf`,
  more: Partial<RegisterRequest> = {},
): Promise<string> {
  const done = await desk.register(
    { agent, path, holder: null, fit: false, class: null, contextTokens: null, ...more },
    NEVER,
  );
  return done.ok ? 'ok' : (done.error.denial?.code ?? done.error.error.code);
}

export function decode(
  desk: EngineDesk,
  agent: string,
  maxTokens: number,
  prompt: string,
  signal: AbortSignal = NEVER,
): Promise<DeskResult<DecodeAnswer>> {
  return desk.decode({ agent, maxTokens, prompt }, signal);
}

/** The answer, which there must be. */
export async function answered(result: Promise<DeskResult<DecodeAnswer>>): Promise<DecodeAnswer> {
  const done = await result;
  if (!done.ok) throw new Error(done.error.error.message);
  return done.value;
}
