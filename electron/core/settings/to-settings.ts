import {
  type BackendSetting,
  DEFAULT_ENGINE,
  DEFAULT_PARKING,
  type DeviceSetting,
  type EngineSettings,
  type FallbackSetting,
  type Settings,
} from '../../../shared/settings.ts';
import { defaults } from './defaults.ts';
import type { ParsedConfig } from './schema.ts';
import { withoutV1 } from './urls.ts';

/** Fills what the config leaves out. `home`: what `~/` stands for; null leaves it as written. */
export function toSettings(config: ParsedConfig, home: string | null): Settings {
  const base = defaults();
  return {
    floor: config.floor ?? base.floor,
    cap: config.cap ?? base.cap,
    idleMs: config.idle ?? base.idleMs,
    raceGraceMs: config.raceGrace ?? base.raceGraceMs,
    guards: config.guards ?? base.guards,
    maxBig: config.maxBig ?? base.maxBig,
    race: config.race ?? base.race,
    big: toBig(config.big) ?? base.big,
    small: config.small ?? base.small,
    batchOnly: config.batchOnly ?? base.batchOnly,
    ttlMs: config.ttl ?? base.ttlMs,
    pinned: config.pinned ?? base.pinned,
    devices: config.devices?.map((device) => toDevice(device, home)) ?? base.devices,
    backends: config.backends?.map((backend) => toBackend(backend, home)) ?? base.backends,
    footprints: config.footprints ?? base.footprints,
    fallbacks: config.fallbacks?.map(toFallback) ?? base.fallbacks,
    agents: mapValues(config.agents ?? {}, (agent) => {
      const kind = agent.class ?? 'interactive';
      return { class: kind, onBusy: agent.onBusy ?? (kind === 'batch' ? 'wait' : 'fallback') };
    }),
    ...(config.comfyui === undefined || config.comfyui === null ? {} : { comfyui: config.comfyui }),
    ...(typeof config.kernelLog === 'string' ? { kernelLog: config.kernelLog } : {}),
    ...(typeof config.orphans === 'string' ? { orphans: config.orphans } : {}),
    ...(config.drain === undefined || config.drain === null
      ? {}
      : { drain: { kill: config.drain.kill ?? 'ask', restart: config.drain.restart ?? 'ask' } }),
    ...(config.engine === undefined || config.engine === null ? {} : { engine: toEngine(config.engine) }),
    ...(config.parking === undefined || config.parking === null
      ? {}
      : {
          parking: {
            limitBytes:
              config.parking.limit === 'off' ? 0 : (config.parking.limit ?? DEFAULT_PARKING.limitBytes),
            keepMs: config.parking.keep ?? DEFAULT_PARKING.keepMs,
          },
        }),
    server: {
      port: config.server?.port ?? base.server.port,
      apiKeyEnv: config.server?.apiKeyEnv ?? base.server.apiKeyEnv,
      origins: config.server?.origins?.map((origin) => origin.toLowerCase()) ?? base.server.origins,
    },
  };
}

function toEngine(engine: Present<ParsedConfig['engine']>): EngineSettings {
  const usual = DEFAULT_ENGINE;
  return {
    contextTokens: engine.context ?? usual.contextTokens,
    hostMemory: engine.hostMemory ?? usual.hostMemory,
    filesBytes: engine.files === 'off' ? 0 : (engine.files ?? usual.filesBytes),
    parallel: engine.parallel ?? usual.parallel,
    turnTokens: engine.turnTokens ?? usual.turnTokens,
  };
}

function toBig(big: ParsedConfig['big']): Settings['big'] | undefined {
  if (big === undefined || big === null) return undefined;
  return 'atLeast' in big ? { atLeastBytes: big.atLeast } : { names: big };
}

type Present<T> = NonNullable<T>;
type ParsedDevice = Present<ParsedConfig['devices']>[number];
type ParsedBackend = Present<ParsedConfig['backends']>[number];
type ParsedFallback = Present<ParsedConfig['fallbacks']>[number];

function toDevice(device: ParsedDevice, home: string | null): DeviceSetting {
  const floor = device.floor === undefined || device.floor === null ? {} : { floor: device.floor };
  switch (device.kind) {
    case 'amdgpu':
      return {
        kind: 'amdgpu',
        ...(typeof device.path === 'string' ? { path: expandHome(device.path, home) } : {}),
        ...memoryOf(device),
        ...floor,
      };
    case 'simulated':
      return { kind: 'simulated', path: expandHome(device.path, home), ...floor };
    case 'nvidia':
      return {
        kind: 'nvidia',
        ...(typeof device.smi === 'string' ? { smi: expandHome(device.smi, home) } : {}),
        ...memoryOf(device),
        ...floor,
      };
    case 'system':
      return { kind: 'system', ...floor };
  }
}

function memoryOf(device: { readonly memory?: 'discrete' | 'unified' | null | undefined }): {
  readonly memory?: 'discrete' | 'unified';
} {
  return typeof device.memory === 'string' ? { memory: device.memory } : {};
}

function toBackend(backend: ParsedBackend, home: string | null): BackendSetting {
  return {
    name: backend.name,
    kind: backend.kind,
    url: typeof backend.url === 'string' ? withoutV1(backend.url) : null,
    lanes: backend.lanes ?? null,
    front: backend.front ?? null,
    ...(typeof backend.lane === 'string' ? { lane: backend.lane } : {}),
    command: backend.command?.map((part) => expandHome(part, home)) ?? null,
    models: mapValues(backend.models ?? {}, (path) => expandHome(path, home)),
    device: backend.device ?? null,
    guards: backend.guards ?? null,
    apiKeyEnv: backend.apiKeyEnv ?? null,
    ...(typeof backend.assumeIdle === 'number' ? { assumeIdleMs: backend.assumeIdle } : {}),
    ...(typeof backend.start === 'string' ? { start: backend.start } : {}),
    found: false,
  };
}

function toFallback(fallback: ParsedFallback): FallbackSetting {
  return {
    name: fallback.name,
    url: fallback.url,
    apiKeyEnv: fallback.apiKeyEnv ?? null,
    models: fallback.models ?? {},
  };
}

function expandHome(path: string, home: string | null): string {
  return home !== null && path.startsWith('~/') ? `${home}${path.slice(1)}` : path;
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
