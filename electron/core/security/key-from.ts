import type { Settings } from '../../../shared/settings.ts';
import { secrets } from './secrets.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A key as its variable has it, without the line end that files leave behind. null: none is named, or there is nothing in it. */
export function keyFrom(env: Environment, name: string | null): string | null {
  const value = name === null ? '' : (env[name]?.trim() ?? '');
  secrets.learn(value);
  return value === '' ? null : value;
}

/** Keys that the settings name and nobody has set, in sentences. */
export function missingKeys(env: Environment, settings: Settings): readonly string[] {
  const isMissing = (name: string | null): name is string => name !== null && keyFrom(env, name) === null;
  const { apiKeyEnv } = settings.server;
  const own = isMissing(apiKeyEnv)
    ? [
        `The variable ${apiKeyEnv} (server.apiKeyEnv) is not set where this runs, so /v1 and /metrics are closed to all who have no token. Set it and start this anew, or take the setting out.`,
      ]
    : [];
  const others = [...(settings.backends ?? []), ...settings.fallbacks].flatMap(({ name, apiKeyEnv: its }) =>
    isMissing(its)
      ? [`The variable ${its} of ${name} is not set where this runs, so ${name} is asked without its key.`]
      : [],
  );
  return [...own, ...others];
}
