import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { serverPorts } from '../core/backends/discovery/listening-servers.ts';
import { createGate } from '../core/gate/gate.ts';
import { procfs } from '../core/process/procfs.ts';
import { type Listener, parseListeners } from '../core/security/listeners.ts';
import { type FileFacts, type SecurityCheck, whoReachesWhat } from '../core/security/who-reaches.ts';
import { parseSettings } from '../core/settings/parse-settings.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { isRecordAlive, readRuntimeRecord } from '../core/state-dir/runtime-record.ts';
import type { Invocation } from './arguments.ts';

/** Who can reach what of VRAM Landlord and of the servers it watches. Opens no connection and changes nothing. */
export async function doctorSecurity(
  invocation: Invocation,
): Promise<{ readonly title: string; readonly checks: readonly SecurityCheck[] }> {
  const paths = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    stateDir: invocation.text('state-dir') ?? undefined,
    config: invocation.text('config') ?? undefined,
  });
  const text = await readFile(paths.configFile, 'utf8').catch(() => '');
  const read = parseSettings(text, paths.configFile, homedir());
  const settings = read.ok ? read : parseSettings('', paths.configFile, homedir());
  if (!settings.ok) throw new Error(settings.error.message);
  const broken: readonly SecurityCheck[] = read.ok
    ? []
    : [
        {
          name: 'settings',
          outcome: 'failed',
          detail: [`they can not be read, so what follows is of the defaults: ${read.error.message}`],
        },
      ];
  const proc = procfs();
  const gateRoot = createGate({ env: () => process.env }).root();
  const record = await readRuntimeRecord(paths.runtimeFile);
  const alive = record !== null && (await isRecordAlive(record)) !== false;
  const port = alive && record.url !== null ? Number(new URL(record.url).port) : null;
  const [own] = alive ? proc.facts([record.pid]) : [];
  const facts = {
    uid: process.geteuid?.() ?? null,
    listeners: await readListeners(),
    runtime: alive && port !== null ? { pid: record.pid, port, ports: own?.listeningPorts ?? [] } : null,
    stateDir: await fileFacts(paths.stateDir),
    token: await fileFacts(paths.tokenFile),
    database: await fileFacts(paths.databaseFile),
    socket: await fileFacts(paths.socketFile),
    gateRoot,
    gateFolder: gateRoot === null ? null : await fileFacts(gateRoot.path),
    settings: settings.value,
    config: await fileFacts(paths.configFile),
    configDir: await fileFacts(paths.configDir),
    serverPorts: serverPorts(proc.servers()),
  };
  return { title: 'Who can reach what', checks: [...broken, ...whoReachesWhat(facts)] };
}

/** null where neither table can be read. */
async function readListeners(): Promise<readonly Listener[] | null> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => null)),
  );
  return tables.every((table) => table === null)
    ? null
    : tables.flatMap((table) => (table === null ? [] : parseListeners(table)));
}

async function fileFacts(path: string): Promise<FileFacts | null> {
  try {
    const found = await stat(path);
    return { path, mode: found.mode & 0o7777, uid: found.uid };
  } catch {
    return null;
  }
}
