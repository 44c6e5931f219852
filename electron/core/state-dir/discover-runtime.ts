import { fail, ok, type Result } from '../../../shared/errors.ts';
import { http } from '../node-http.ts';
import { holdsLock } from './lock-file.ts';
import type { LandlordPaths } from './paths.ts';
import { isRecordAlive, readRuntimeRecord } from './runtime-record.ts';
import { readToken } from './token.ts';

export interface FoundRuntime {
  /** `http://127.0.0.1:7781`, without a trailing slash. */
  readonly url: string;
  readonly token: string;
  /** null when it was named by `--port` and left no record. */
  readonly pid: number | null;
}

export interface DiscoverOptions {
  /** `--port`: the runtime that listens there, whatever the record says. */
  readonly port?: number | undefined;
  /** How long /healthz may take. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 2000;

/**
 * The runtime whose files lie in this state folder, proven alive by its lock and by an answer from
 * `/healthz`. The token goes to nobody before that, and to loopback alone.
 *
 * Errors: `no_runtime`; `storage_failed` for a token that can't be read.
 */
export async function discoverRuntime(
  paths: Pick<LandlordPaths, 'runtimeFile' | 'lockFile' | 'tokenFile' | 'stateDir'>,
  options: DiscoverOptions = {},
): Promise<Result<FoundRuntime>> {
  const located = options.port === undefined ? await locate(paths) : ok(named(options.port));
  if (!located.ok) return located;
  const { url, pid } = located.value;

  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const answer = await askHealth(url, timeoutMs);
  if (answer !== null) {
    const message =
      pid === null
        ? `${url} ${answer}; start a runtime with \`landlord serve\`, or name another by its port.`
        : `The runtime with pid ${pid} holds its lock, but ${url} ${answer}; restart it.`;
    return fail('no_runtime', message, { pid, timeoutMs });
  }
  const token = await readToken(paths.tokenFile);
  return token.ok ? ok({ url, pid, token: token.value.token }) : token;
}

interface Located {
  readonly url: string;
  readonly pid: number | null;
}

function named(port: number): Located {
  return { url: `http://127.0.0.1:${port}`, pid: null };
}

async function locate(
  paths: Pick<LandlordPaths, 'runtimeFile' | 'lockFile' | 'stateDir'>,
): Promise<Result<Located>> {
  const record = await readRuntimeRecord(paths.runtimeFile);
  if (record === null) {
    return fail(
      'no_runtime',
      `No runtime was started with the state folder ${paths.stateDir}; start one with \`landlord serve\`, ` +
        'or name another with --state-dir or --port.',
    );
  }
  const alive = await isRecordAlive(record);
  if (alive === false || (await holdsLock(record.pid, paths.lockFile)) === false) {
    return fail(
      'no_runtime',
      `No runtime is running: the last one here (pid ${record.pid}, started ${record.startedAt}) has ended; ` +
        'start one with `landlord serve`.',
      { pid: record.pid },
    );
  }
  if (record.url === null) {
    return fail(
      'no_runtime',
      `The runtime with pid ${record.pid} is still starting; try again in a moment.`,
      {
        pid: record.pid,
      },
    );
  }
  if (!isLoopback(record.url)) {
    return fail(
      'no_runtime',
      `${paths.runtimeFile} names an address that is not loopback, so it is not used; restart the runtime.`,
      { pid: record.pid },
    );
  }
  return ok({ url: record.url.replace(/\/+$/, ''), pid: record.pid });
}

function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  return (
    protocol === 'http:' &&
    username === '' &&
    password === '' &&
    ['127.0.0.1', '[::1]', 'localhost'].includes(hostname)
  );
}

/**
 * null when it answers 200, or 401 as it does where an API key is set; else what it did, to follow
 * its URL.
 */
function askHealth(url: string, timeoutMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const request = http.get(
      `${url}/healthz`,
      { agent: false, signal: AbortSignal.timeout(timeoutMs) },
      (response) => {
        response.resume();
        const status = response.statusCode ?? 0;
        resolve(status === 200 || status === 401 ? null : `answered /healthz with HTTP ${status}`);
      },
    );
    request.once('error', (error) => {
      resolve(
        error.name === 'AbortError' || error.name === 'TimeoutError'
          ? `did not answer /healthz within ${timeoutMs} ms`
          : 'does not answer',
      );
    });
  });
}
