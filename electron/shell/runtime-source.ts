/**
 * The runtime that the window shows: our own, or the one of this user that runs already (of a
 * service, of `landlord serve`). Only our own ends with us.
 */
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import type { Runtime, RuntimeOptions } from '../core/runtime.ts';
import { discoverRuntime, type FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';

export interface RuntimeSource {
  readonly owned: boolean;
  /** An address that lets the window in once. */
  openUrl(): Promise<Result<string>>;
  /** Ends the runtime if it is ours. */
  stop(): Promise<void>;
}

export type RuntimeChoice = Pick<RuntimeOptions, 'configPath' | 'stateDir' | 'port'>;

export interface SourceParts {
  startRuntime(choice: RuntimeChoice): Promise<Result<Pick<Runtime, 'openUrl' | 'stop'>>>;
  findRuntime(choice: RuntimeChoice): Promise<Result<FoundRuntime>>;
  askToOpen(runtime: FoundRuntime): Promise<Result<string>>;
}

const OPEN_TIMEOUT_MS = 5000;

/** The same options as `landlord serve`; what else stands there (Electron's own switches) is not ours. */
export function choiceFrom(args: readonly string[]): Result<RuntimeChoice> {
  const { values } = parseArgs({
    args: [...args],
    strict: false,
    options: { config: { type: 'string' }, 'state-dir': { type: 'string' }, port: { type: 'string' } },
  });
  const text = (value: string | boolean | undefined): string | null =>
    typeof value === 'string' ? value : null;
  const portText = text(values.port);
  const port = portText === null ? null : portText.trim() === '' ? Number.NaN : Number(portText);
  if (values.port === true || (port !== null && !(Number.isInteger(port) && port >= 0 && port <= 65_535))) {
    return fail('bad_input', `--port must be a number from 0 to 65535, not ${JSON.stringify(values.port)}.`);
  }
  return ok({ configPath: text(values.config), stateDir: text(values['state-dir']), port });
}

/** Starts one, or takes the one that is there. */
export async function connectRuntime(
  parts: SourceParts,
  choice: RuntimeChoice,
): Promise<Result<RuntimeSource>> {
  const started = await parts.startRuntime(choice);
  if (started.ok) {
    const runtime = started.value;
    return ok({ owned: true, openUrl: async () => ok(runtime.openUrl), stop: () => runtime.stop() });
  }
  if (started.error.code !== 'already_running') return started;
  const found = await parts.findRuntime(choice);
  // The port may be another program's: then what the start said is what helps.
  if (!found.ok) return started;
  // Looked for anew each time: a runtime that was restarted has another address and another token.
  const openUrl = async (): Promise<Result<string>> => {
    const now = await parts.findRuntime(choice);
    return now.ok ? parts.askToOpen(now.value) : now;
  };
  return ok({ owned: false, openUrl, stop: async () => {} });
}

export const realParts: SourceParts = {
  async startRuntime(choice) {
    // Loaded only now, so that a second instance ends without loading any of it.
    const { startRuntime } = await import('../core/runtime.ts');
    return startRuntime(choice);
  },
  findRuntime: (choice) =>
    discoverRuntime(
      resolvePaths({
        env: process.env,
        home: homedir(),
        cwd: process.cwd(),
        stateDir: choice.stateDir ?? undefined,
      }),
      { port: choice.port !== null && choice.port > 0 ? choice.port : undefined },
    ),
  async askToOpen(runtime) {
    try {
      const response = await fetch(`${runtime.url}/api/open`, {
        method: 'POST',
        headers: { authorization: `Bearer ${runtime.token}` },
        redirect: 'error',
        signal: AbortSignal.timeout(OPEN_TIMEOUT_MS),
      });
      const body: unknown = await response.json();
      if (
        response.ok &&
        typeof body === 'object' &&
        body !== null &&
        'url' in body &&
        typeof body.url === 'string'
      ) {
        return ok(body.url);
      }
      return fail(
        'no_runtime',
        `The runtime at ${runtime.url} gave no address for its page (HTTP ${response.status}); restart it.`,
      );
    } catch (error) {
      return fail(
        'no_runtime',
        `The runtime at ${runtime.url} does not answer: ${messageOf(error)}. Restart it.`,
      );
    }
  },
};
