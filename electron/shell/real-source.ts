/** What a runtime source takes from the machine: this user's files, the core, and HTTP on loopback. */
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { fail, ok, type Result } from '../../shared/errors.ts';
import { discoverRuntime } from '../core/state-dir/discover-runtime.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { ask, attachRuntime } from './attached-runtime.ts';
import type { RuntimeChoice, SourceParts } from './runtime-source.ts';

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
  attach: (runtime) => attachRuntime(runtime),
  async askToOpen(runtime) {
    const answer = await ask(runtime, 'POST', '/api/open', {}, AbortSignal.timeout(OPEN_TIMEOUT_MS));
    const body = answer.ok ? answer.value : null;
    if (typeof body === 'object' && body !== null && 'url' in body && typeof body.url === 'string') {
      return ok(body.url);
    }
    const why = answer.ok ? 'gave none' : answer.error.message;
    return fail('no_runtime', `No address of the page at ${runtime.url}: ${why} Restart the runtime.`);
  },
};
