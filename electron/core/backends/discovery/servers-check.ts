import type { BackendSetting } from '../../../../shared/settings.ts';
import type { Clock } from '../../clock.ts';
import { serverProgram } from '../../process/programs.ts';
import { keyFrom } from '../../security/key-from.ts';
import { hostAndPort, isThisMachine } from '../own-address.ts';
import { USUAL_PORTS } from './discovery.ts';
import { deaf, inTheWay, pidsOn, type Seen, type ServerCheck, whoListens } from './in-the-way.ts';
import { serverPorts } from './listening-servers.ts';
import { type Found, proveKind } from './prove-kind.ts';
import { unreadableFiles } from './unreadable-files.ts';

export interface ServersCheckOptions extends Seen {
  /** Those of the config; null: it names none, or can't be read. */
  readonly backends: readonly BackendSetting[] | null;
  readonly uid: number | null;
  readonly clock: Clock;
  /** Why the config can't be read, as a sentence; left out or null: it can, or there is none. */
  readonly configError?: string | null;
  readonly usualPorts?: readonly number[];
  readonly timeoutMs?: number;
  /** Whether a file is there and this user's to read; left out: no file is looked at. */
  readonly canRead?: (path: string) => Promise<boolean>;
}

/** What `landlord doctor` says of servers: which answer, as what, and what is in the way. Loads and wakes nothing. */
export async function checkServers(
  options: ServersCheckOptions,
): Promise<{ readonly title: string; readonly checks: readonly ServerCheck[] }> {
  const { backends, processes, clock, timeoutMs = 1_500, usualPorts = USUAL_PORTS } = options;
  const named = backends ?? [];
  const checks: ServerCheck[] = [];
  if (options.configError != null) {
    checks.push({
      name: 'config',
      outcome: 'failed',
      detail: [`it can not be read, so that none of its backends is known here: ${options.configError}`],
    });
  }
  for (const setting of named) {
    if (setting.url === null) continue;
    const found = await proveKind(setting.url, clock, timeoutMs, keyOf(setting));
    const check = namedCheck(setting, setting.url, found, options);
    const more = check.outcome === 'ok' ? await filesOf(setting, setting.url, found) : null;
    checks.push(more === null ? check : { ...check, detail: [...check.detail, more] });
  }
  const known = new Set(named.flatMap(portsOf));
  const ports = [...new Set([...usualPorts, ...serverPorts(processes ?? [])])].filter(
    (port) => !known.has(port),
  );
  const looks = await Promise.all(
    ports.map(async (port) => ({
      port,
      found: await proveKind(`http://127.0.0.1:${port}`, clock, timeoutMs),
    })),
  );
  // A program that serves at one port may have others for itself.
  const serving = new Set(
    looks.flatMap(({ port, found }) => (found.type === 'server' ? pidsOn(port, options) : [])),
  );
  for (const { port, found } of looks) {
    if (found.type === 'server') checks.push(foundCheck(port, found, named.length === 0, options));
    else if (!pidsOn(port, options).some((pid) => serving.has(pid)))
      checks.push(
        ...inTheWay(port, found, options).filter(({ name }) => !checks.some((one) => one.name === name)),
      );
  }
  checks.push(...deaf(processes ?? []));
  if (processes === null) {
    checks.push({
      name: 'processes',
      outcome: 'skipped',
      detail: ['processes can not be listed here: only ports were asked.'],
    });
  }
  if (named.length === 0 && !looks.some(({ found }) => found.type === 'server')) {
    const where = usualPorts.join(', ');
    checks.push({
      name: 'servers',
      outcome: 'skipped',
      detail: [`no inference server answers on the usual ports (${where}); name yours in the config.`],
    });
  }
  return { title: 'Servers', checks };

  function keyOf(setting: BackendSetting): string | null {
    return keyFrom(process.env, setting.apiKeyEnv);
  }

  async function filesOf(setting: BackendSetting, url: string, found: Found): Promise<string | null> {
    const { canRead } = options;
    if (canRead === undefined || found.type !== 'server' || !found.proven.isRouter) return null;
    if (!isThisMachine(hostAndPort(url).host)) return null;
    return await unreadableFiles(url, keyOf(setting), timeoutMs, canRead);
  }
}

/** What a backend of the config answers for here: its own port, and the one it has in front. */
function portsOf({ url, front }: BackendSetting): readonly number[] {
  const own = url !== null && isThisMachine(hostAndPort(url).host) ? [hostAndPort(url).port] : [];
  return front === null ? own : [...own, front];
}

function foundCheck(
  port: number,
  found: Extract<Found, { type: 'server' }>,
  isWatched: boolean,
  options: ServersCheckOptions,
): ServerCheck {
  const watched = isWatched
    ? 'it is watched, and offered on the page'
    : 'it is not in the config, so it is not watched';
  return {
    name: `port ${port}`,
    outcome: 'ok',
    detail: [`${titleOf(found)} answers; ${watched}.`, ...processLines(port, options)],
  };
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
  if (setting.kind === 'openai') return openAiCheck(setting, url, found, here);
  const ours = setting.command !== null;
  if (found.type === 'silent' && found.why === 'nothing') {
    const detail = ours
      ? 'VRAM Landlord runs it, and starts it when it is up itself.'
      : `start the server, or correct the url of backend ${name}.`;
    return { name, outcome: ours ? 'skipped' : 'failed', detail: [`nothing answers at ${url}.`, detail] };
  }
  if (found.type === 'loading')
    return { name, outcome: 'ok', detail: [`a llama-server at ${url} is loading its model.`, ...here] };
  if (found.type === 'silent') {
    return {
      name,
      outcome: 'failed',
      detail: [
        found.why === 'time'
          ? `${url} takes connections and gave no answer in time: it hangs, or is no web server. \`landlord drain\` empties what a frozen server holds.`
          : `${url} can not be reached, or hangs up: correct the url of backend ${name}.`,
        ...(isThisMachine(host) ? [`it is ${whoListens(port, options)}.`] : here),
      ],
    };
  }
  if (found.type === 'other') {
    const who = isThisMachine(host) ? whoListens(port, options) : 'a program there';
    return {
      name,
      outcome: 'failed',
      detail: [
        found.wantsKey
          ? `${url} wants a key: name the variable that holds it as the backend's apiKeyEnv.`
          : `${url} answers, but as none of the servers we know: another program may have that port, or it wants a key (apiKeyEnv).`,
        `it is ${who}.`,
        ...(ours ? [`VRAM Landlord can not start its own ${name} while that has the port.`] : []),
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

/** Any server with OpenAI's API will do: what it is besides is its own affair. */
function openAiCheck(
  { name }: BackendSetting,
  url: string,
  found: Found,
  here: readonly string[],
): ServerCheck {
  if (found.type === 'silent') {
    const detail = `start the server, or correct the url of backend ${name}.`;
    return { name, outcome: 'failed', detail: [`nothing answers at ${url}.`, detail] };
  }
  const what =
    found.type === 'server'
      ? `${titleOf(found)} answers at ${url}; as kind: openai only the names of its models are read. Write kind: ${found.proven.kind} to have it guarded.`
      : `${url} answers.`;
  return { name, outcome: 'ok', detail: [what, ...here] };
}

function titleOf(found: Extract<Found, { type: 'server' }>): string {
  const { kind, isRouter, version } = found.proven;
  const title = kind === 'llama.cpp' ? (isRouter ? 'a llama.cpp router' : 'a single llama-server') : kind;
  return version === null ? title : `${title} ${version}`;
}

/** Whether its process can be proven, so that it may be signalled where a race leaves no other way. */
function processLines(port: number, options: ServersCheckOptions): readonly string[] {
  const { processes, uid } = options;
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
  if (pidsOn(port, options).length > 0) {
    return [
      `what listens there is ${whoListens(port, options)}, not the server itself, as where a container's port is handed on: nothing of it is signalled.`,
    ];
  }
  return [
    hidden
      ? 'the ports of a server process of another user can not be read, so no process is proven: nothing of it is signalled.'
      : 'no server process of this machine listens there, as when it runs in a container: nothing of it is signalled.',
  ];
}
