import type { BackendSetting } from '../../shared/settings.ts';

/** A llama.cpp backend of the config on port 8080, but for what a test says. */
export function backendSetting(change: Partial<BackendSetting> = {}): BackendSetting {
  return {
    name: 'router',
    kind: 'llama.cpp',
    url: 'http://127.0.0.1:8080',
    lanes: null,
    front: null,
    command: null,
    models: {},
    device: null,
    guards: null,
    apiKeyEnv: null,
    found: false,
    ...change,
  };
}
