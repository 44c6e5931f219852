import type { BackendSetting } from '../../../../shared/settings.ts';
import type { Clock } from '../../clock.ts';
import type { ProcessFacts } from '../../process/identity.ts';
import { serverProgram } from '../../process/programs.ts';
import { hostAndPort, isThisMachine } from '../own-address.ts';
import { USUAL_PORTS } from './discovery.ts';
import { serverPorts } from './listening-servers.ts';
import { type Found, proveKind } from './prove-kind.ts';

export interface ServerCheck {
  readonly name: string;
  readonly outcome: 'ok' | 'failed' | 'skipped';
  /** Sentences; the first says the result. */
  readonly detail: readonly string[];
}

export interface ServersCheckOptions {
  /** Those of the config; null: it names none, or can't be read. */
  readonly backends: readonly BackendSetting[] | null;
  /** Server processes, with what can be read of them; null: processes can't be listed here. */
  readonly processes: readonly ProcessFacts[] | null;
  readonly uid: number | null;
  readonly clock: Clock;
  readonly usualPorts?: readonly number[];
  readonly timeoutMs?: number;
}

/** What `landlord doctor` says of servers: which answer, as what, and what is in the way. Loads and wakes nothing. */
export async function checkServers(
  options: ServersCheckOptions,
): Promise<{ readonly title: string; readonly checks: readonly ServerCheck[] }> {
  const { backends, processes, clock, timeoutMs = 1_500, usualPorts = USUAL_PORTS } = options;
  const named = backends ?? [];
  const checks: ServerCheck[] = [];
  for (const setting of named) {
    if (setting.url === null) continue;
    const found = await proveKind(setting.url, clock, timeoutMs, keyOf(setting));
    checks.push(namedCheck(setting, setting.url, found, options));
  }
  const known = new Set(
    named.flatMap(({ url }) =>
      url !== null && isThisMachine(hostAndPort(url).host) ? [hostAndPort(url).port] : [],
    ),
  );
  const ports = [...new Set([...usualPorts, ...serverPorts(processes ?? [])])].filter(
    (port) => !known.has(port),
  );
  for (const port of ports) {
    const url = `http://127.0.0.1:${port}`;
    const found = await proveKind(url, clock, timeoutMs);
    if (found.type !== 'server') continue;
    const watched =
      named.length === 0
        ? 'it is watched, and offered on the page'
        : 'it is not in the config, so it is not watched';
    checks.push({
      name: `port ${port}`,
      outcome: 'ok',
      detail: [`${titleOf(found)} answers; ${watched}.`, ...processLines(port, options)],
    });
  }
  if (processes === null) {
    checks.push({
      name: 'processes',
      outcome: 'skipped',
      detail: ['processes can not be listed here: only ports were asked.'],
    });
  }
  if (checks.length === 0) {
    const where = usualPorts.join(', ');
    checks.push({
      name: 'servers',
      outcome: 'skipped',
      detail: [`no inference server answers on the usual ports (${where}); name yours in the config.`],
    });
  }
  return { title: 'Servers', checks };

  function keyOf(setting: BackendSetting): string | null {
    return setting.apiKeyEnv === null ? null : (process.env[setting.apiKeyEnv] ?? null);
  }
}

function namedCheck(
  setting: BackendSetting,
  url: string,
  found: Found,
  options: ServersCheckOptions,
): ServerCheck {
  const name = setting.name;
  const { host, port } = hostAndPort(url);
  const here = isThisMachine(host)
    ? processLines(port, options)
    : [`${host} is another machine: its processes and its memory can not be seen from here.`];
  if (found.type === 'silent') {
    const ours = setting.command !== null;
    const detail = ours
      ? 'VRAM Landlord runs it, and starts it when it is up itself.'
      : `start the server, or correct the url of backend ${name}.`;
    return { name, outcome: ours ? 'skipped' : 'failed', detail: [`nothing answers at ${url}.`, detail] };
  }
  if (found.type === 'other') {
    return {
      name,
      outcome: 'failed',
      detail: [
        `${url} answers, but as none of the servers we know: another program may have that port, or it wants a key (apiKeyEnv).`,
        ...here,
      ],
    };
  }
  if (found.proven.kind !== setting.kind) {
    return {
      name,
      outcome: 'failed',
      detail: [
        `${url} is ${titleOf(found)}, and the config calls it ${setting.kind}: write kind: ${found.proven.kind}.`,
      ],
    };
  }
  return { name, outcome: 'ok', detail: [`${titleOf(found)} answers at ${url}.`, ...here] };
}

function titleOf(found: Extract<Found, { type: 'server' }>): string {
  const { kind, isRouter, version } = found.proven;
  const title = kind === 'llama.cpp' ? (isRouter ? 'a llama.cpp router' : 'a single llama-server') : kind;
  return version === null ? title : `${title} ${version}`;
}

/** Whether its process can be proven, so that it may be signalled where a race leaves no other way. */
function processLines(port: number, { processes, uid }: ServersCheckOptions): readonly string[] {
  if (processes === null) return [];
  const listening = processes.filter((process) => process.listeningPorts?.includes(port) === true);
  const [only] = listening;
  if (only !== undefined && listening.length === 1) {
    const own = only.uid === uid || uid === 0;
    return own
      ? []
      : [
          `its process ${only.pid} runs as user ${only.uid}: it can be asked to unload, not signalled; run both as one user for that.`,
        ];
  }
  const hidden = processes.some(
    (process) =>
      process.listeningPorts === null && process.command !== null && serverProgram(process.command) !== null,
  );
  return [
    hidden
      ? 'the ports of a server process of another user can not be read, so no process is proven: nothing of it is signalled.'
      : 'no server process of this machine listens there, as when it runs in a container: nothing of it is signalled.',
  ];
}
