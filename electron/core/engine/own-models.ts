import type { BackendSetting } from '../../../shared/settings.ts';

/**
 * Whether servers of this machine are looked for: where the config names none. Models of our own engine
 * are no server, and whoever adds one does not mean that the Ollama beside it is no longer to be seen.
 */
export function looksForServers(named: readonly BackendSetting[] | null): boolean {
  return named === null || (named.length > 0 && named.every((setting) => setting.kind === 'embedded'));
}

/** Those that the config names, and where it names no server, those that were found. */
export function watchedBackends(
  named: readonly BackendSetting[] | null,
  found: readonly BackendSetting[],
): readonly BackendSetting[] {
  if (named === null) return found;
  if (!looksForServers(named)) return named;
  return [...named, ...found.filter((one) => !named.some((other) => other.name === one.name))];
}
