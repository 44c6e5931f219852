import { access, constants, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { checkServers } from '../core/backends/discovery/servers-check.ts';
import { systemClock } from '../core/clock.ts';
import { procfs } from '../core/process/procfs.ts';
import { parseSettings } from '../core/settings/parse-settings.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import type { Invocation } from './arguments.ts';

/** The servers of this user's config, and those that are found: what each is, and what is in the way. */
export async function doctorServers(invocation: Invocation): ReturnType<typeof checkServers> {
  const { configFile } = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    config: invocation.text('config') ?? undefined,
  });
  const text = await readFile(configFile, 'utf8').catch(() => null);
  const settings = text === null ? null : parseSettings(text, configFile, homedir());
  const proc = procfs();
  return checkServers({
    backends: settings?.ok === true ? settings.value.backends : null,
    configError: settings?.ok === false ? settings.error.message : null,
    processes: proc.pids().length === 0 ? null : proc.servers(),
    listeners: (port) => proc.find({ port, alias: null, routerPort: null }),
    uid: process.geteuid?.() ?? null,
    clock: systemClock,
    canRead: (path) =>
      access(path, constants.R_OK).then(
        () => true,
        () => false,
      ),
  });
}
