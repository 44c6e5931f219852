import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { formatBytes } from '../../shared/format.ts';
import { armSignal } from '../core/actuators/reaper.ts';
import { type Orphan, orphanIdentity, orphansAmong, straysAmong } from '../core/backends/orphans.ts';
import { hostAndPort } from '../core/backends/own-address.ts';
import { procfs } from '../core/process/procfs.ts';
import { secrets } from '../core/security/secrets.ts';
import { parseSettings } from '../core/settings/parse-settings.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { readCount } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { columns, plain } from './terminal.ts';
import { usageError } from './usage.ts';

/** Model processes whose own server is gone; ends one that a person names, once it is proven again. */
export const runOrphans: Run = async (invocation, terminal) => {
  const end = readCount(invocation, 'end', 2, 4_194_304);
  if (!end.ok) return usageError(invocation.command, end.error.message, terminal);
  const proc = procfs();
  const servers = proc.servers();
  const ports = await backendPorts();
  const orphans = [...orphansAmong(servers), ...(ports === null ? [] : straysAmong(servers, ports))];
  if (end.value === null) {
    if (orphans.length === 0) terminal.out('No model process is without its server.');
    const row = ({ facts, why }: Orphan): readonly string[] => [
      `  ${facts.pid}`,
      `${formatBytes(proc.residentBytes(facts.pid))} resident`,
      plain(secrets.hide(`${(facts.command ?? []).slice(0, 4).join(' ')}: ${why}`)),
    ];
    for (const line of columns(orphans.map(row), [0, 1])) terminal.out(line);
    return EXIT.done;
  }
  const orphan = orphans.find(({ facts }) => facts.pid === end.value);
  const identity = orphan === undefined ? null : orphanIdentity(orphan);
  if (identity === null) {
    const why =
      orphan === undefined
        ? 'is not proven to be without its server'
        : 'listens nowhere, so it can not be proven a second time';
    terminal.err(`landlord orphans: process ${end.value} ${why}; nothing was done.`);
    return EXIT.refused;
  }
  const armed = await armSignal(identity);
  const done = armed.ok ? await armed.value.kill() : armed;
  if (armed.ok) armed.value[Symbol.dispose]();
  if (!done.ok) {
    terminal.err(`landlord orphans: ${plain(done.error.message)}`);
    return EXIT.refused;
  }
  terminal.out(
    done.value.goneAfterMs === null
      ? `Process ${end.value} was told to end and is still there: its driver may hold it.`
      : `Process ${end.value} is gone.`,
  );
  return EXIT.done;
};

/** Where the config's backends are; null: it names none, so that every server counts as one that is watched. */
async function backendPorts(): Promise<ReadonlySet<number> | null> {
  const { configFile } = resolvePaths({ env: process.env, home: homedir(), cwd: process.cwd() });
  const text = await readFile(configFile, 'utf8').catch(() => null);
  const settings = text === null ? null : parseSettings(text, configFile, homedir());
  const backends = settings?.ok === true ? settings.value.backends : null;
  if (backends === null) return null;
  return new Set(
    backends.flatMap(({ url, front }) => [
      ...(url === null ? [] : [hostAndPort(url).port]),
      ...(front === null ? [] : [front]),
    ]),
  );
}
