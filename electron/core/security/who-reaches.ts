import type { BackendSetting, Settings } from '../../../shared/settings.ts';
import { hostAndPort, isThisMachine } from '../backends/own-address.ts';
import type { GateRoot } from '../gate/gate-root.ts';
import { type Listener, reachOf } from './listeners.ts';

export interface SecurityCheck {
  readonly name: string;
  readonly outcome: 'ok' | 'failed' | 'skipped';
  /** Sentences; the first says who can reach it. */
  readonly detail: readonly string[];
}

/** What of a file says who may open it. */
export interface FileFacts {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
}

export interface SecurityFacts {
  readonly uid: number | null;
  /** null: its listening sockets can't be read here. */
  readonly listeners: readonly Listener[] | null;
  /** null: none runs with this state folder. */
  readonly runtime: { readonly pid: number; readonly port: number; readonly ports: readonly number[] } | null;
  /** null: not there. */
  readonly stateDir: FileFacts | null;
  readonly token: FileFacts | null;
  readonly database: FileFacts | null;
  readonly socket: FileFacts | null;
  readonly gateRoot: GateRoot | null;
  readonly gateFolder: FileFacts | null;
  readonly settings: Settings;
  /** The config and its folder: who writes there decides which programs are started. null: not there. */
  readonly config: FileFacts | null;
  readonly configDir: FileFacts | null;
  /** Ports of inference servers of this machine, whoever runs them. */
  readonly serverPorts: readonly number[];
}

/** What `landlord doctor --security` says: each way in, who can take it, and what it lets them do. */
export function whoReachesWhat(facts: SecurityFacts): readonly SecurityCheck[] {
  return [
    pageCheck(facts),
    openRoutesCheck(facts),
    originsCheck(facts.settings),
    ...frontsOf(facts.settings).map(({ setting, front }) => frontCheck(setting, front, facts)),
    ...furtherPorts(facts),
    fileCheck('token', facts.token, facts.uid, 'whoever reads it may do all that you may do here'),
    fileCheck('state folder', facts.stateDir, facts.uid, 'the log, the token and the socket lie in it'),
    fileCheck('log', facts.database, facts.uid, 'it names models, agents and sessions'),
    fileCheck('ledger socket', facts.socket, facts.uid, 'agents register and decode through it'),
    configCheck(facts),
    gateCheck(facts),
    ...backendChecks(facts),
    ...fallbackChecks(facts.settings),
  ];
}

function frontsOf(
  settings: Settings,
): readonly { readonly setting: BackendSetting; readonly front: number }[] {
  return (settings.backends ?? []).flatMap((setting) =>
    setting.front === null ? [] : [{ setting, front: setting.front }],
  );
}

/** Where a port takes connections; null: it can't be told. */
function placesOf(port: number, { listeners }: SecurityFacts): readonly string[] | null {
  if (listeners === null) return null;
  return listeners.filter((one) => one.port === port).map((one) => one.address);
}

const MACHINE = 'every program and user of this machine';

function pageCheck(facts: SecurityFacts): SecurityCheck {
  const name = 'page and /api';
  if (facts.runtime === null) {
    const why = 'no runtime runs with this state folder, so nothing of it listens.';
    return { name, outcome: 'skipped', detail: [why] };
  }
  const { port } = facts.runtime;
  const places = placesOf(port, facts);
  const open = (places ?? []).filter((address) => reachOf(address) === 'the network');
  if (open.length > 0)
    return {
      name,
      outcome: 'failed',
      detail: [`port ${port} is open to the network at ${open.join(', ')}.`],
    };
  return {
    name,
    outcome: 'ok',
    detail: [
      `port ${port}${places === null ? '' : ` at ${places.join(', ')}`}: ${MACHINE} can connect; only who has the token, or a cookie of its page, is answered.`,
      'Pages of other sites are refused by Host, Origin and Sec-Fetch-Site.',
    ],
  };
}

function openRoutesCheck({ settings }: SecurityFacts): SecurityCheck {
  const name = '/v1, /metrics and /healthz';
  const { apiKeyEnv } = settings.server;
  const detail =
    apiKeyEnv === null
      ? [
          `no key is set: ${MACHINE} can use the models through the gateway, and read the figures.`,
          'Set server.apiKeyEnv where others work on this machine.',
        ]
      : [`only who sends the key of ${apiKeyEnv}, or the token, is answered.`];
  return { name, outcome: 'ok', detail };
}

function originsCheck({ server }: Settings): SecurityCheck {
  const detail =
    server.origins.length === 0
      ? 'no page of another origin may ask anything.'
      : `pages of ${server.origins.join(', ')} may use /v1, and nothing else.`;
  return { name: 'web pages', outcome: 'ok', detail: [detail] };
}

function frontCheck(setting: BackendSetting, front: number, facts: SecurityFacts): SecurityCheck {
  const name = `front port of ${setting.name}`;
  const places = placesOf(front, facts) ?? [];
  const open = places.filter((address) => reachOf(address) === 'the network');
  if (open.length > 0)
    return {
      name,
      outcome: 'failed',
      detail: [`port ${front} is open to the network at ${open.join(', ')}.`],
    };
  return {
    name,
    outcome: 'ok',
    detail: [`port ${front}: ${MACHINE} can use ${setting.name} through it, as they can at its own port.`],
  };
}

/** What else of the runtime listens: the embedded engine. */
function furtherPorts(facts: SecurityFacts): readonly SecurityCheck[] {
  const { runtime } = facts;
  if (runtime === null) return [];
  const known = [runtime.port, ...frontsOf(facts.settings).map(({ front }) => front)];
  return runtime.ports
    .filter((port) => !known.includes(port))
    .map((port) => {
      const open = (placesOf(port, facts) ?? []).filter((address) => reachOf(address) === 'the network');
      return open.length > 0
        ? {
            name: `port ${port} of the runtime`,
            outcome: 'failed' as const,
            detail: [`it is open to the network at ${open.join(', ')}.`],
          }
        : {
            name: `embedded engine, port ${port}`,
            outcome: 'ok' as const,
            detail: [`${MACHINE} can connect; only the gateway has the key, made anew at each start.`],
          };
    });
}

function fileCheck(name: string, file: FileFacts | null, uid: number | null, what: string): SecurityCheck {
  if (file === null) return { name, outcome: 'skipped', detail: ['it is not there yet.'] };
  const mode = `mode ${file.mode.toString(8).padStart(4, '0')}`;
  if (uid !== null && file.uid !== uid)
    return { name, outcome: 'failed', detail: [`${file.path} belongs to user ${file.uid}; ${what}.`] };
  if ((file.mode & 0o077) === 0)
    return { name, outcome: 'ok', detail: [`${file.path} (${mode}): its owner alone and root; ${what}.`] };
  return {
    name,
    outcome: 'failed',
    detail: [`${file.path} (${mode}) is open to others; ${what}.`, `Run chmod go= ${file.path}`],
  };
}

function configCheck({ config, configDir, uid }: SecurityFacts): SecurityCheck {
  const name = 'settings';
  if (config === null) return { name, outcome: 'skipped', detail: ['there is no config file.'] };
  for (const one of [config, configDir]) {
    if (one === null) continue;
    const isForeign = uid !== null && one.uid !== uid && one.uid !== 0;
    // In a folder like /tmp nobody may replace another's file.
    const isSticky = one === configDir && (one.mode & 0o1000) !== 0;
    if (!isForeign && ((one.mode & 0o022) === 0 || isSticky)) continue;
    const who = isForeign ? `user ${one.uid} can write ${one.path}` : `others can write ${one.path}`;
    return {
      name,
      outcome: 'failed',
      detail: [
        `${who}, and a config names the programs that are started as you.`,
        `Run chmod go-w ${one.path}`,
      ],
    };
  }
  return { name, outcome: 'ok', detail: [`${config.path}: its owner alone can write it, and root.`] };
}

/** What leaves the machine. */
function fallbackChecks({ fallbacks }: Settings): readonly SecurityCheck[] {
  return fallbacks.map(({ name, url, apiKeyEnv }) => {
    const { host } = hostAndPort(url);
    const key = apiKeyEnv === null ? '' : `, with the key of ${apiKeyEnv}`;
    const goes = `turns that find no room here are sent to ${host}${key}`;
    const clear = !isThisMachine(host) && url.startsWith('http:') ? ', all of it in the clear' : '';
    return { name: `fallback ${name}`, outcome: 'ok', detail: [`${goes}${clear}.`] };
  });
}

function gateCheck({ gateRoot, gateFolder, uid }: SecurityFacts): SecurityCheck {
  const name = 'lanes';
  if (gateRoot === null)
    return { name, outcome: 'skipped', detail: ['there is no root, so no turn has a lane.'] };
  if (gateRoot.from === 'machine-wide')
    return {
      name,
      outcome: 'ok',
      detail: [
        `${gateRoot.path} is shared: every user of this machine can take a lane, and so hold others up; nobody can take another's file away.`,
      ],
    };
  if (gateFolder === null)
    return { name, outcome: 'skipped', detail: [`${gateRoot.path} is not there yet.`] };
  const foreign = uid !== null && gateFolder.uid !== uid;
  const detail = foreign
    ? `${gateRoot.path} belongs to user ${gateFolder.uid}, who can take and remove lanes.`
    : `${gateRoot.path}: its owner alone can take and see lanes.`;
  if (foreign || (gateFolder.mode & 0o022) !== 0)
    return {
      name,
      outcome: 'failed',
      detail: [
        foreign
          ? detail
          : `${gateRoot.path} can be written by others, who can take lanes away: run chmod go-w ${gateRoot.path}`,
      ],
    };
  return { name, outcome: 'ok', detail: [detail] };
}

function backendChecks(facts: SecurityFacts): readonly SecurityCheck[] {
  const named = (facts.settings.backends ?? []).flatMap((setting) =>
    setting.url === null ? [] : [{ setting, ...hostAndPort(setting.url) }],
  );
  const here = named.filter(({ host }) => isThisMachine(host));
  const others = facts.serverPorts.filter((port) => !here.some((one) => one.port === port));
  const checks = [
    ...here.map(({ setting, port }) => serverCheck(`server ${setting.name}`, port, facts)),
    ...others.map((port) => serverCheck(`server at port ${port}`, port, facts)),
  ];
  const away = named
    .filter(({ host, setting }) => !isThisMachine(host) && setting.url?.startsWith('http:') === true)
    .map(({ setting, host }) => ({
      name: `server ${setting.name}`,
      outcome: 'ok' as const,
      detail: [`it is on ${host}, and prompts, answers and its key go there in the clear.`],
    }));
  return [...checks, ...away];
}

function serverCheck(name: string, port: number, facts: SecurityFacts): SecurityCheck {
  const places = placesOf(port, facts);
  if (places === null)
    return {
      name,
      outcome: 'skipped',
      detail: ['sockets can not be read here, so who reaches it is unknown.'],
    };
  if (places.length === 0) return { name, outcome: 'skipped', detail: [`nothing listens at port ${port}.`] };
  const open = places.filter((address) => reachOf(address) === 'the network');
  if (open.length === 0)
    return {
      name,
      outcome: 'ok',
      detail: [`port ${port} at ${places.join(', ')}: ${MACHINE}, past the gateway too.`],
    };
  return {
    name,
    outcome: 'failed',
    detail: [
      `port ${port} is open to the network at ${open.join(', ')}: whoever is in it can load, unload and use models.`,
      'Let the server listen on 127.0.0.1 (`--host 127.0.0.1`), or close the port in the firewall.',
    ],
  };
}
