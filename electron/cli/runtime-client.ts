import { homedir } from 'node:os';
import { fail, ok, type Result } from '../../shared/errors.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { type LandlordState, STATE_SCHEMA } from '../../shared/state.ts';
import { http } from '../core/node-http.ts';
import { discoverRuntime, type FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { type Invocation, readPort } from './arguments.ts';

/** Which runtime the command line means. */
export interface RuntimeChoice {
  readonly stateDir: string | null;
  readonly port: number | null;
}

/** A figure is asked for at once; a command may take as long as a model takes to load. */
const READ_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export function runtimeChoice(invocation: Invocation): Result<RuntimeChoice> {
  const port = readPort(invocation, 1);
  return port.ok ? ok({ stateDir: invocation.text('state-dir'), port: port.value }) : port;
}

/** Errors: `no_runtime`, `storage_failed` (the token can't be read). */
export async function findRuntime(choice: RuntimeChoice): Promise<Result<FoundRuntime>> {
  const paths = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    stateDir: choice.stateDir ?? undefined,
  });
  return discoverRuntime(paths, { port: choice.port ?? undefined });
}

export async function fetchState(runtime: FoundRuntime): Promise<Result<LandlordState>> {
  const answer = await ask(runtime, 'GET', '/api/state');
  if (!answer.ok) return answer;
  if (isState(answer.value)) return ok(answer.value);
  return fail(
    'not_supported',
    `The runtime at ${runtime.url} is of another version than this command; restart it.`,
  );
}

/** Oldest first. `query` as /api/events takes it. */
export async function fetchEvents(
  runtime: FoundRuntime,
  query: Readonly<Record<string, string>>,
): Promise<Result<readonly LandlordEvent[]>> {
  const answer = await ask(runtime, 'GET', `/api/events?${new URLSearchParams({ json: '1', ...query })}`);
  if (!answer.ok) return answer;
  return ok(Array.isArray(answer.value) ? answer.value.filter(isEvent) : []);
}

/** Sends one request and reads a JSON answer; the runtime's own refusals come back as they are. */
export function ask(
  runtime: FoundRuntime,
  method: 'GET' | 'POST',
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<Result<unknown>> {
  const sent = body === undefined ? null : JSON.stringify(body);
  return new Promise((resolve) => {
    const lost = (why: string): void =>
      resolve(fail('no_runtime', `The runtime at ${runtime.url} ${why}; \`landlord serve\` starts one.`));
    const request = http.request(
      `${runtime.url}${path}`,
      {
        method,
        agent: false,
        headers: {
          authorization: `Bearer ${runtime.token}`,
          ...(sent === null ? {} : { 'content-type': 'application/json' }),
        },
        ...(method === 'GET' ? { signal: AbortSignal.timeout(READ_TIMEOUT_MS) } : {}),
      },
      (answer) => {
        const parts: Buffer[] = [];
        let sizeBytes = 0;
        answer.on('data', (part: Buffer) => {
          sizeBytes += part.length;
          if (sizeBytes > MAX_ANSWER_BYTES) answer.destroy(new Error('too long'));
          else parts.push(part);
        });
        answer.on('error', () => lost('broke off its answer'));
        answer.on('end', () => resolve(readAnswer(answer.statusCode ?? 0, Buffer.concat(parts), runtime)));
      },
    );
    request.on('error', (error) =>
      lost(error.name === 'TimeoutError' ? `did not answer within ${READ_TIMEOUT_MS / 1000} s` : 'went away'),
    );
    request.end(sent ?? undefined);
  });
}

export function readAnswer(status: number, body: Buffer, runtime: FoundRuntime): Result<unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return fail('internal', `What listens at ${runtime.url} answered ${status} without JSON; is it ours?`);
  }
  if (status >= 200 && status < 300) return ok(value);
  if (status === 401) {
    return fail(
      'not_permitted',
      `The runtime at ${runtime.url} does not take the token of this state folder; name its own with --state-dir.`,
    );
  }
  return fail('backend_refused', refusalMessage(value) ?? `The runtime answered ${status}.`);
}

function refusalMessage(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !('error' in value)) return null;
  const { error } = value;
  if (typeof error !== 'object' || error === null || !('message' in error)) return null;
  return typeof error.message === 'string' ? error.message : null;
}

/** A JSON object; null for anything else. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

function isState(value: unknown): value is LandlordState {
  return typeof value === 'object' && value !== null && 'schema' in value && value.schema === STATE_SCHEMA;
}

export function isEvent(value: unknown): value is LandlordEvent {
  if (typeof value !== 'object' || value === null) return false;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  return (
    typeof fields.id === 'number' && typeof fields.kind === 'string' && typeof fields.reason === 'string'
  );
}
