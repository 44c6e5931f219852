/** A systemd service that keeps a server. */
export interface Unit {
  readonly name: string;
  /** Of this user's own manager, or the system's. */
  readonly scope: 'user' | 'system';
}

/**
 * The service a process runs in, by /proc/<pid>/cgroup (cgroups(7)): version 2's one line, or version 1's
 * line of systemd. null: a scope (a terminal, a container, an app a person has started) or no service at all.
 */
export function unitOfCgroup(text: string): Unit | null {
  const lines = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  // Where both versions are mounted, version 2's line may be empty.
  const paths = ['', 'name=systemd'].map((name) => lines.find((line) => line?.[1] === name)?.[2] ?? '/');
  const path = paths.find((one) => one !== '/');
  const parts = (path ?? '').split('/').filter((part) => part !== '');
  const last = parts.at(-1) ?? '';
  // What is deeper than a service may be a container of its own, which is no process of the service's.
  if (!last.endsWith('.service') || /^user@\d+\.service$/.test(last)) return null;
  const isUsers = parts.slice(0, -1).some((part) => /^user@\d+\.service$/.test(part));
  return { name: last, scope: isUsers ? 'user' : 'system' };
}
