import type { Result } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { Clock } from '../clock.ts';
import type { Sampler } from '../devices/sampler.ts';
import { processTimes } from '../process/process-times.ts';
import type { ServerInspector } from '../process/proof.ts';
import { keyFrom } from '../security/key-from.ts';
import { assumingIdle } from './assume-idle.ts';
import type { Backend } from './backend.ts';
import type { Dialect } from './dialects/dialect.ts';
import { lemonadeDialect } from './dialects/lemonade.ts';
import { llamaSwapDialect } from './dialects/llama-swap.ts';
import { lmStudioDialect } from './dialects/lm-studio.ts';
import { ollamaDialect } from './dialects/ollama.ts';
import { llamaCppBackend } from './llama-cpp-router.ts';
import { openAiBackend } from './openai-backend.ts';
import { logFileOf } from './own/log-file.ts';
import { ownBackend } from './own/own-backend.ts';
import { withoutEnv, withSlotFolder } from './own/slot-flag.ts';
import { supervisor } from './own/supervisor.ts';
import { hostAndPort, isThisMachine } from './own-address.ts';
import { tellingReloads } from './reloads.ts';
import { toldBackend } from './told-backend.ts';

/** The adapter for a backend of the config, by its kind; null: a kind that is not watched. `isServing`: a request of ours is with `backend/model` now. */
export function makeBackend(
  setting: BackendSetting,
  clock: Clock,
  env: Readonly<Record<string, string | undefined>>,
  sampler: () => Sampler,
  isServing: (modelId: string) => boolean = () => false,
  own: OwnPlaces | null = null,
): Backend | null {
  const { name, url } = setting;
  if (url === null) return null;
  const apiKey = keyFrom(env, setting.apiKeyEnv);
  const inspector: ServerInspector = {
    find: async (query) => valueOr(await sampler().find(query)),
    facts: async (pids) => valueOr(await sampler().facts(pids)),
    times: processTimes,
  };
  const command = own === null ? null : startedWith(setting.command, own);
  const shared = { name, url, clock, apiKey, inspector };
  const dialect = dialectFor(setting.kind, url, clock);
  const watched =
    dialect === null
      ? setting.kind === 'llama.cpp'
        ? llamaCppBackend({ ...shared, command: command === null ? null : withoutEnv(command) })
        : setting.kind === 'openai'
          ? openAiBackend(shared)
          : null
      : toldBackend({ ...shared, dialect });
  if (watched === null) return null;
  const told = tellingReloads(watched, clock);
  const backend =
    command === null || own === null ? told : ownBackend(told, ownOptions(setting, command, url, clock, own));
  if (typeof setting.assumeIdleMs !== 'number') return backend;
  return assumingIdle(backend, setting.assumeIdleMs, clock, (model) => isServing(`${name}/${model}`));
}

/** Where servers that are ours run and leave their logs. */
export interface OwnPlaces {
  readonly cwd: string;
  readonly logFolder: string;
  /** Where they keep conversations while a model is away; left out: nowhere. */
  readonly slotFolder?: string;
}

/** As it is set, with the folder for its conversations. */
function startedWith(command: BackendSetting['command'], places: OwnPlaces): readonly string[] | null {
  if (command === null || places.slotFolder === undefined) return command;
  return withSlotFolder(command, places.slotFolder);
}

function ownOptions(
  setting: BackendSetting,
  command: readonly string[],
  url: string,
  clock: Clock,
  places: OwnPlaces,
): Parameters<typeof ownBackend>[1] {
  const { host, port } = hostAndPort(url);
  return {
    start: setting.start ?? 'now',
    nowMs: clock.monotonicMs,
    supervisor: (onChange) =>
      supervisor({
        name: setting.name,
        command,
        host,
        port,
        cwd: places.cwd,
        logFile: logFileOf(places.logFolder, setting.name),
        clock,
        onChange,
      }),
  };
}

/** null: llama.cpp, which has an adapter of its own, or a kind that is not watched. */
export function dialectFor(kind: BackendSetting['kind'], url: string, clock: Clock): Dialect | null {
  const { host, port } = hostAndPort(url);
  const ownPort = isThisMachine(host) ? port : null;
  switch (kind) {
    case 'llama-swap':
      return llamaSwapDialect(ownPort, clock.monotonicMs);
    case 'ollama':
      return ollamaDialect(ownPort, clock);
    case 'lmstudio':
      return lmStudioDialect();
    case 'lemonade':
      return lemonadeDialect(ownPort, clock.monotonicMs);
    case 'llama.cpp':
    case 'embedded':
    case 'openai':
      return null;
  }
}

/** A sampler that does not answer knows of no process: nothing is proven then, and nothing signalled. */
function valueOr<T>(result: Result<readonly T[]>): readonly T[] {
  return result.ok ? result.value : [];
}
