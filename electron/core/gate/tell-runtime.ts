import { homedir } from 'node:os';
import { http } from '../node-http.ts';
import type { ReportedEvent } from '../runtime-api.ts';
import { discoverRuntime, type FoundRuntime } from '../state-dir/discover-runtime.ts';
import { type LandlordPaths, resolvePaths } from '../state-dir/paths.ts';
import { passwdHome } from './gate-root.ts';

/**
 * Sends one event to the runtime of this user, if one runs. Resolves when it has it, when there is
 * none, or when the time is up, whichever is first; never rejects. Its timer keeps no process alive.
 */
export async function tellRuntime(event: ReportedEvent, limitMs: number): Promise<void> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      over.abort();
      resolve();
    }, limitMs);
    timer.unref();
  });
  await Promise.race([findAndSend(event, limitMs, over.signal).catch(() => undefined), limit]);
  clearTimeout(timer);
}

async function findAndSend(event: ReportedEvent, limitMs: number, signal: AbortSignal): Promise<void> {
  for (const paths of places()) {
    const found = await discoverRuntime(paths, { timeoutMs: limitMs });
    if (signal.aborted) return;
    if (!found.ok) continue;
    await post(found.value, event, signal);
    return;
  }
}

/**
 * Where this process would start a runtime, then where this user's own is: an agent's profile may
 * have a HOME of its own.
 */
function places(): readonly LandlordPaths[] {
  const cwd = '/';
  const own = resolvePaths({ env: process.env, home: homedir(), cwd });
  const home = passwdHome();
  if (home === null) return [own];
  const users = resolvePaths({ env: {}, home, cwd });
  return users.stateDir === own.stateDir ? [own] : [own, users];
}

function post(runtime: FoundRuntime, event: ReportedEvent, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify(event);
  return new Promise((resolve, reject) => {
    const outgoing = http.request(
      `${runtime.url}/api/reports`,
      {
        method: 'POST',
        agent: false,
        signal,
        headers: {
          authorization: `Bearer ${runtime.token}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (answer) => {
        answer.resume();
        answer.once('error', reject);
        answer.once('end', resolve);
      },
    );
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}
