import type { Result } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { Clock } from '../clock.ts';
import type { ChildSampler } from '../devices/sampler.ts';
import { processTimes } from '../process/process-times.ts';
import type { Backend } from './backend.ts';
import { llamaCppBackend } from './llama-cpp-router.ts';

/** The adapter for a backend of the config, by its kind; null: a kind that is not watched. */
export function makeBackend(
  setting: BackendSetting,
  clock: Clock,
  env: Readonly<Record<string, string | undefined>>,
  sampler: () => ChildSampler,
): Backend | null {
  if (setting.kind !== 'llama.cpp' || setting.url === null) return null;
  return llamaCppBackend({
    name: setting.name,
    url: setting.url,
    clock,
    apiKey: setting.apiKeyEnv === null ? null : (env[setting.apiKeyEnv] ?? null),
    inspector: {
      find: async (query) => valueOr(await sampler().find(query)),
      facts: async (pids) => valueOr(await sampler().facts(pids)),
      times: processTimes,
    },
  });
}

/** A sampler that does not answer knows of no process: nothing is proven then, and nothing signalled. */
function valueOr<T>(result: Result<readonly T[]>): readonly T[] {
  return result.ok ? result.value : [];
}
