import { randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ok, type Result } from '../../shared/errors.ts';
import type { Units } from './actuators/units.ts';
import { assemble } from './assemble.ts';
import { type Clock, systemClock } from './clock.ts';
import type { EngineHostOptions } from './engine/child-host.ts';
import { openLedgerSocket } from './engine/socket/ledger-socket.ts';
import type { Notification } from './events/notification-log.ts';
import type { GatewayPace } from './gateway/gateway.ts';
import { startHttpServer } from './http/server.ts';
import type { HostApi } from './runtime-api.ts';
import { keyFrom } from './security/key-from.ts';
import { secrets } from './security/secrets.ts';
import { ensureStateDir } from './state-dir/ensure-state-dir.ts';
import { takeAwayLeftOvers } from './state-dir/left-overs.ts';
import { resolvePaths } from './state-dir/paths.ts';
import { acquireRuntimeLock } from './state-dir/runtime-lock.ts';
import { StateWatch } from './state-dir/state-watch.ts';
import { loadOrCreateToken } from './state-dir/token.ts';
import { version } from './version.ts';

export interface RuntimeOptions {
  /** null: the user's own config. */
  readonly configPath: string | null;
  /** Moves every file but the config; null: the user's own state folder. */
  readonly stateDir: string | null;
  /** null: the config's `server.port`; 0: any free one. */
  readonly port: number | null;
  readonly clock?: Clock;
  /** Where backends are looked for when the config names none; empty: nowhere. */
  readonly discoverPorts?: readonly number[];
  /** How services are started anew; default systemd. */
  readonly units?: Units;
  /** The built page. */
  readonly pageDir?: string | null;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** false: nothing goes to syslog or the journal (the demo, tests: what they evict is not real). Default true. */
  readonly systemLog?: boolean;
  /** Tests: how soon the gateway tells those who wait, and lets them go first. */
  readonly gatewayPace?: Partial<GatewayPace>;
  /** How often servers nearby and processes without a server are looked for; left out: as chores say. */
  readonly lookEveryMs?: number;
  /** How the embedded engine runs; default: on the best device there is. */
  readonly engine?: EngineHostOptions;
}

export interface Runtime extends HostApi {
  /** `http://127.0.0.1:7781` */
  readonly url: string;
  /** Opens the page once; a new one each time it is read. */
  readonly openUrl: string;
  /** What a person is to be told outside the window, oldest first. */
  notifications(): readonly Notification[];
  /** Ends everything that was started, in order; backends that are not ours are left alone. */
  stop(): Promise<void>;
}

const PAGE_DIR = fileURLToPath(new URL('../../out/renderer', import.meta.url));

/**
 * The composition root: everything that makes up VRAM Landlord, without a shell around it.
 *
 * Errors: `already_running` (another runtime of this user, or the port), `storage_failed`, `not_permitted`.
 */
export async function startRuntime(options: RuntimeOptions): Promise<Result<Runtime>> {
  const clock = options.clock ?? systemClock;
  const env = options.env ?? process.env;
  const paths = resolvePaths({
    env,
    home: homedir(),
    cwd: process.cwd(),
    stateDir: options.stateDir ?? undefined,
    config: options.configPath ?? undefined,
  });
  const uid = process.geteuid?.() ?? null;
  const ready = await ensureStateDir(paths.stateDir, uid);
  if (!ready.ok) return ready;
  const self = {
    pid: process.pid,
    startedAt: new Date(clock.epochMs()).toISOString(),
    version: version(),
  };
  const lock = await acquireRuntimeLock(paths, self);
  if (!lock.ok) return lock;
  void takeAwayLeftOvers(
    [paths.configFile, paths.schemaFile, paths.tokenFile, paths.runtimeFile, paths.lastGoodConfigFile],
    clock.epochMs(),
  );
  const token = await loadOrCreateToken(paths.tokenFile, uid);
  if (!token.ok) {
    await lock.value.release();
    return token;
  }
  const box = await assemble(options, clock, env, paths);
  const { settings } = box.loop;
  secrets.learn(token.value.token);
  // A key that is asked for and not there opens nothing: this one nobody knows.
  const unknown = randomBytes(32).toString('hex');
  const http = await startHttpServer({
    api: box.api,
    port: options.port ?? settings.server.port,
    token: token.value.token,
    apiKey() {
      const { apiKeyEnv } = box.loop.settings.server;
      return apiKeyEnv === null ? null : (keyFrom(env, apiKeyEnv) ?? unknown);
    },
    pageDir: options.pageDir === undefined ? PAGE_DIR : options.pageDir,
    version: version(),
    gateway: box.gateway,
    clock,
  });
  if (!http.ok) {
    await box.stop();
    await lock.value.release();
    return http;
  }
  box.listens(http.value.url);
  const published = await lock.value.publish(http.value.url);
  if (!published.ok)
    box.journal.tell({ kind: 'storage_failed', reason: published.error.message, numbers: {} });
  for (const note of [...ready.value.notes, ...token.value.notes])
    box.journal.tell({ kind: 'config_loaded', reason: note, numbers: {} });
  const openSocket = async (): ReturnType<typeof openLedgerSocket> => {
    const opened = await openLedgerSocket({ path: paths.socketFile, desk: box.desk, clock });
    // All else works without it.
    if (!opened.ok) box.journal.tell({ kind: 'storage_failed', reason: opened.error.message, numbers: {} });
    return opened;
  };
  let socket = await openSocket();
  const stateWatch = new StateWatch(lock.value, {
    paths,
    uid,
    self,
    token: token.value.token,
    url: http.value.url,
    tell: (event) => box.journal.tell(event),
    async restored() {
      // Closing takes a file of its name away, so first.
      if (socket.ok) await socket.value.stop();
      socket = await openSocket();
    },
  });
  box.journal.tell({
    kind: 'started',
    reason: `VRAM Landlord ${version()} is running at ${http.value.url}.`,
    numbers: { pid: process.pid, port: http.value.port },
  });
  return ok({
    ...box.api,
    url: http.value.url,
    notifications: () => box.journal.notifications(),
    get openUrl() {
      return http.value.openUrl();
    },
    async stop() {
      box.journal.tell({ kind: 'stopped', reason: 'VRAM Landlord was asked to stop.', numbers: {} });
      await stateWatch.stop();
      await http.value.stop();
      if (socket.ok) await socket.value.stop();
      await box.stop();
      await stateWatch.release();
    },
  });
}
