import { realpath, stat, statfs } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { ok, type Result } from '../../../shared/errors.ts';
import { formatBytes } from '../../../shared/format.ts';
import {
  byName,
  DEFAULT_ENGINE,
  type EngineSettings,
  matchesName,
  resolveSize,
  type Settings,
} from '../../../shared/settings.ts';
import type { Clock } from '../clock.ts';
import type { ControlLoop } from '../control-loop.ts';
import type { DeviceSample } from '../devices/sample.ts';
import { engineLineId } from '../engine/desk/agent.ts';
import { EngineDesk } from '../engine/desk/desk.ts';
import type { DeskDevice, DeskPolicy, DeskWorld, FootprintRequest } from '../engine/desk/desk-world.ts';
import { modelName } from '../engine/desk/shelf.ts';
import { StateFiles, type StatePlace } from '../engine/desk/state-files.ts';
import type { EngineHost } from '../engine/engine-host.ts';
import type { EventStore } from '../events/event-store.ts';
import { startTimeOf } from '../gate/process-start.ts';
import { agentSettingOf } from '../gateway/caller.ts';
import type { GuardDevice } from '../guards/world.ts';
import type { EngineProcess } from '../ledger/attribution.ts';
import { type DeviceKind, kindOn } from '../ledger/footprint/device-kind.ts';
import type { FootprintSource } from '../ledger/footprint/footprint-source.ts';
import type { CommandDone } from '../runtime-api.ts';
import { hostFolder } from './agent-folders.ts';
import { chooseDevice } from './choose-device.ts';
import { lookedOnce } from './commands.ts';
import type { AgentsRoom } from './control-options.ts';
import type { CommandContext } from './load-command.ts';
import { loadShortBytes } from './load-short.ts';
import { makeRoomFor, whoStays } from './room.ts';

export interface AgentParts {
  readonly context: CommandContext;
  readonly host: EngineHost;
  readonly store: EventStore;
  readonly footprints: FootprintSource;
  /** Whether the gateway serves this very file: its weights are booked with that model. */
  readonly serves: (path: string) => boolean;
  readonly stateDir: string;
  /** A reading of all devices is wanted now. */
  readonly hurry: () => void;
}

/** A card has room to compute for several; the CPU's threads are all one decode's. */
const TURNS_ON_GPU = 4;
/** Of a prompt in one turn: seconds of work for either. Multiples of their batch sizes. */
const GPU_PROMPT_TOKENS = 4_096;
const CPU_PROMPT_TOKENS = 1_024;
const READING_LIMIT_MS = 3_000;
/** Contexts move out a little before models have to: they are back in milliseconds. */
const BEFORE_MODELS_MS = 1_000;
/** Left free in host memory and on the disk whatever the budgets. */
const HOST_SPARE_BYTES = 512_000_000;
const FILE_SPARE_BYTES = 1_000_000_000;

/** As the config has them now. */
function engineOf({ context }: AgentParts): EngineSettings {
  return context.loop.settings.engine ?? DEFAULT_ENGINE;
}

/** The desk of the runtime's agents, and what of the loop it answers to. */
export async function agentDesk(parts: AgentParts): Promise<EngineDesk> {
  const hostDir = hostFolder(parts.stateDir);
  const files = new StateFiles({
    hostDir,
    fileDir: `${parts.stateDir}/agents`,
    get hostBudgetBytes() {
      return resolveSize(engineOf(parts).hostMemory, totalmem()) ?? 0;
    },
    get fileBudgetBytes() {
      return engineOf(parts).filesBytes;
    },
    roomBytes: (place) => roomBytes(place, hostDir, parts.stateDir),
  });
  const gpu = (): boolean => (parts.host.facts()?.gpu ?? 'cpu') !== 'cpu';
  const desk = new EngineDesk({
    world: deskWorld(parts),
    files,
    store: parts.store,
    limits: () => {
      const { parallel, turnTokens } = engineOf(parts);
      const onGpu = gpu();
      return {
        atOnce: parallel ?? (onGpu ? TURNS_ON_GPU : 1),
        tokens: turnTokens,
        promptTokens: onGpu ? GPU_PROMPT_TOKENS : CPU_PROMPT_TOKENS,
      };
    },
  });
  await desk.open(parts.store.trouble() === null);
  return desk;
}

/** `landlord unload` of an agent; null: there is none of this name. */
export async function putAgentAway(
  desk: EngineDesk,
  name: string,
  force: boolean,
): Promise<Result<CommandDone> | null> {
  const put = await desk.putAway(name, force);
  if (put === null) return null;
  if (!put.ok) return { ok: false, error: put.error.error };
  const { freedBytes } = put.value;
  return ok({
    message:
      freedBytes === 0
        ? `${name} held no memory of its own; its conversation is kept.`
        : `${name} is put away: ${formatBytes(freedBytes)} is given back. It goes on from where it was with its next request.`,
    numbers: { freedBytes },
  });
}

/** What its agents can give when a model, or a job, is asked for that does not fit beside them. */
export function agentsRoom(
  parts: () => {
    readonly desk: EngineDesk | null;
    readonly context: Pick<CommandContext, 'loop' | 'clock'>;
    readonly sampler: { hurry(): void };
  },
): AgentsRoom {
  return {
    idleBytes: (deviceId) => parts().desk?.relief.idleBytes(deviceId) ?? 0,
    async give(deviceId, bytes, why) {
      const { desk, context, sampler } = parts();
      const given = (await desk?.relief.give(deviceId, bytes, why)) ?? 0;
      if (given > 0) await nextReading(context.loop, deviceId, context.clock, () => sampler.hurry());
      return given;
    },
  };
}

/** Resolves with the next reading of a device, or when none comes. */
async function nextReading(
  loop: ControlLoop,
  deviceId: string,
  clock: Clock,
  hurry: () => void,
): Promise<void> {
  const fromMs = clock.monotonicMs();
  hurry();
  await loop.until(() => (loop.sight.device(deviceId)?.takenAtMs ?? 0) > fromMs, READING_LIMIT_MS);
}

/**
 * What the desk gives back for what the loop sees: to a drain and to a person's wish everything, to the
 * floor just enough, before any model has to leave. Returns what is on its way, by device.
 */
export function relieve(
  desk: EngineDesk | null,
  { loop, clock }: Pick<CommandContext, 'loop' | 'clock'>,
  devices: readonly GuardDevice[],
): ReadonlyMap<string, number> {
  if (desk === null) return new Map();
  const nowMs = clock.monotonicMs();
  const { relief } = desk;
  desk.settle();
  for (const device of devices) {
    const wanted = loop.orders.wantedFree.find((order) => order.deviceId === device.id);
    const coming = relief.comingBytes(device.id, device.sampledAtMs);
    const short = shortBytes(device, loop, nowMs) - coming;
    const loading = loadShortBytes(device) - coming;
    if (loop.orders.draining)
      void relief.give(device.id, Number.MAX_SAFE_INTEGER, 'everything is being drained');
    else if (wanted !== undefined && device.freeBytes !== null && device.freeBytes < wanted.freeBytes)
      void relief.give(device.id, wanted.freeBytes - device.freeBytes, 'room was asked for');
    else if (short > 0) void relief.give(device.id, short, 'free memory is under the floor');
    else if (loading > 0) void relief.give(device.id, loading, 'a model that is being loaded needs the room');
    else if (loop.wishes.sleep !== null)
      void relief.giveModels(
        device.id,
        (path, bytes) => isBig(loop.settings, path, bytes),
        'big models are asleep',
      );
  }
  return new Map(devices.map((device) => [device.id, relief.comingBytes(device.id, device.sampledAtMs)]));
}

/** How much is missing to the floor, once that has lasted; 0: nothing. */
function shortBytes(device: GuardDevice, loop: CommandContext['loop'], nowMs: number): number {
  const { freeBytes, floorBytes, id } = device;
  if (!device.fresh || freeBytes === null || floorBytes === null || freeBytes >= floorBytes) return 0;
  const since = loop.memory.breachSinceMs[id];
  const breachMs = loop.world?.policy.breachMs ?? 0;
  const isReal =
    device.evictionUnderWay === true ||
    freeBytes < floorBytes / 2 ||
    (since !== undefined && nowMs - since >= breachMs - BEFORE_MODELS_MS);
  return isReal ? floorBytes - freeBytes : 0;
}

function deskWorld({ context, host, footprints, hurry, serves }: AgentParts): DeskWorld {
  const { loop, ledger, clock, journal, fleet } = context;
  const device = async (): Promise<Result<DeskDevice>> => {
    await lookedOnce(context);
    const chosen = deviceFor(loop.sight.devices(), host.facts()?.gpu ?? null, embeddedDevice(loop.settings));
    if (!chosen.ok) return chosen;
    const sample = chosen.value;
    return ok({
      id: sample.id,
      name: sample.name,
      kind: host.facts()?.gpu ?? kindOn(sample.kind),
      unified: sample.memory !== 'discrete' || sample.kind === 'simulated',
    });
  };
  const roomWish = (wish: Parameters<DeskWorld['makeRoom']>[0]) => ({
    ...wish,
    modelId: null,
    byAgent: true as const,
  });
  return {
    host,
    ledger,
    clock,
    device,
    devices: () => loop.sight.devices().map((sample) => sample.id),
    estimate: (request) => footprints.footprintOf(loadRequest(request)),
    bookedElsewhere: serves,
    makeRoom: (wish) => makeRoomFor(loop, roomWish(wish)),
    reading: (deviceId) => nextReading(loop, deviceId, clock, hurry),
    advice: (wish) => whoStays(loop, roomWish(wish), ledger.bookedOn(wish.deviceId)),
    policy: (): DeskPolicy => ({
      draining: loop.orders.draining,
      asleep: loop.wishes.sleep !== null,
      isBig: (path, bytes) => isBig(loop.settings, path, bytes),
    }),
    usualContextTokens: () => (loop.settings.engine ?? DEFAULT_ENGINE).contextTokens,
    classOf: (agent) => agentSettingOf(agent, loop.settings)?.class ?? 'interactive',
    tell: (event) => journal.tell(event),
    changed: () => loop.wake(),
    async engineIdle() {
      const inUse = fleet
        .list()
        .some(
          ({ snapshot }) =>
            snapshot.kind === 'embedded' &&
            snapshot.models.some((model) => model.status !== 'unloaded' && model.status !== 'failed'),
        );
      if (!inUse) await host.stop();
    },
    async realPath(path) {
      try {
        const real = await realpath(path);
        // A directory or a pipe is told by whoever reads its header.
        return (await stat(real)).isFIFO() ? null : real;
      } catch {
        return null;
      }
    },
  };
}

/** Batch sizes are the engine's own: what a cancellation waits for at most. */
function loadRequest(request: FootprintRequest): Parameters<FootprintSource['footprintOf']>[0] {
  const args = ['--parallel', '1', '--ubatch-size', request.kind === 'cpu' ? '128' : '512'];
  if (request.contextTokens !== null) args.push('--ctx-size', String(request.contextTokens));
  if (request.gpuLayers !== null) args.push('--n-gpu-layers', String(request.gpuLayers));
  return { modelPath: request.path, args, kind: request.kind, build: null };
}

/** The one the config names; else where the engine computes: main memory on the CPU, else the largest card. */
function deviceFor(
  devices: readonly DeviceSample[],
  gpu: DeviceKind | null,
  wanted: string | null,
): Result<DeviceSample> {
  if (wanted !== null) return chooseDevice(devices, wanted);
  const cards = devices.filter((device) => device.memory === 'discrete');
  const shared = devices.filter((device) => device.memory !== 'discrete');
  const preferred = gpu === 'cpu' ? shared : cards;
  return chooseDevice(preferred.length > 0 ? preferred : devices, null);
}

function embeddedDevice(settings: Settings): string | null {
  return settings.backends?.find((backend) => backend.kind === 'embedded')?.device ?? null;
}

function isBig(settings: Settings, path: string, bytes: number): boolean {
  const id = modelName({ path });
  if (matchesName(settings.small, id)) return false;
  if ('names' in settings.big) return matchesName(settings.big.names, id);
  return (byName(settings.footprints, id) ?? bytes) >= settings.big.atLeastBytes;
}

async function roomBytes(place: StatePlace, hostDir: string, stateDir: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(place === 'host' ? dirname(hostDir) : stateDir);
    const free = bavail * bsize;
    if (place === 'file') return Math.max(0, free - FILE_SPARE_BYTES);
    return Math.max(0, Math.min(free, freemem() - HOST_SPARE_BYTES));
  } catch {
    // No such place.
    return 0;
  }
}

/** Lines of the ledger that live in the engine's process: agents' own, and the models it serves as a backend. */
export function engineProcess(host: EngineHost, embedded: () => ReadonlySet<string>): EngineProcess | null {
  const pid = host.facts()?.pid;
  if (pid === undefined) return null;
  return {
    processes: [{ pid, startTimeTicks: startTimeOf(pid) }],
    ownLine: engineLineId(''),
    holds: (id) => id.startsWith('agent') || embedded().has(id.slice(0, id.indexOf('/'))),
  };
}
