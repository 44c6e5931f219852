/**
 * Stands for a llama.cpp router where there is no llama-server: the part of its HTTP that VRAM Landlord
 * watches and the demo asks, over small real processes that carry a child's command line. What it
 * answers has the shape of llama-server 0.7.0 (tools/server/README.md).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CHILD = fileURLToPath(new URL('./stand-in-model.ts', import.meta.url));
/** The first signal is polite, the second comes after this: half of the real router's, which nobody is told of. */
const STOP_TIMEOUT_MS = 5_000;

interface Model {
  readonly name: string;
  status: 'unloaded' | 'loading' | 'loaded';
  child: ChildProcess | null;
  port: number;
  args: readonly string[];
  exitCode: number | null;
}

const { values } = parseArgs({ options: { port: { type: 'string' }, models: { type: 'string' } } });
const routerPort = Number(values.port);
const models = new Map<string, Model>(
  (values.models ?? '')
    .split(',')
    .map((name) => [name, { name, status: 'unloaded', child: null, port: 0, args: [], exitCode: null }]),
);
const streams = new Set<ServerResponse>();

function tell(model: Model, event: string): void {
  const data = { status: model.status, ...(model.exitCode === null ? {} : { exit_code: model.exitCode }) };
  for (const stream of streams)
    stream.write(`data: ${JSON.stringify({ model: model.name, event, data })}\n\n`);
}

/** Resolves when it is loaded (true) or has ended (false). */
async function load(model: Model): Promise<boolean> {
  if (model.status === 'unloaded') await begin(model);
  const { child } = model;
  if (child === null) return false;
  if (model.status === 'loaded') return true;
  return new Promise((resolve) => {
    child.stdout?.once('data', () => resolve(true));
    child.once('exit', () => resolve(false));
  });
}

async function begin(model: Model): Promise<void> {
  model.status = 'loading';
  model.exitCode = null;
  model.port = await freePort();
  model.args = ['--port', String(model.port), '--alias', model.name, '--metrics'];
  const child = spawn(process.execPath, [...process.execArgv, CHILD, ...model.args], {
    argv0: 'llama-server',
    env: { ...process.env, LLAMA_SERVER_ROUTER_PORT: String(routerPort) },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  model.child = child;
  child.stdout?.once('data', () => {
    model.status = 'loaded';
    tell(model, 'status_change');
  });
  child.once('exit', (code) => {
    model.status = 'unloaded';
    model.child = null;
    model.exitCode = code ?? 1;
    tell(model, 'status_change');
  });
  tell(model, 'model_status');
}

function unload({ child }: Model): void {
  if (child === null) return;
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  child.once('exit', () => clearTimeout(force));
}

function listed(model: Model): unknown {
  const { name, status, args, exitCode } = model;
  const ended = status === 'unloaded' && exitCode !== null;
  return {
    id: name,
    aliases: [],
    status: {
      value: status,
      args: ['llama-server', ...args],
      preset: `[${name}]\n`,
      ...(ended ? { failed: true, exit_code: exitCode } : {}),
    },
  };
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number, message: string): void {
  json(response, status, { error: { message, code: status } });
}

/** Passes a request on to the model's own process. */
function pass(
  model: Model,
  method: string,
  path: string,
  body: string | null,
  response: ServerResponse,
): void {
  const onward = httpRequest({ host: '127.0.0.1', port: model.port, method, path }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, {
      'content-type': answer.headers['content-type'] ?? 'text/plain',
    });
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  onward.on('error', () => refuse(response, 500, 'proxy error: Failed to read connection'));
  onward.end(body ?? undefined);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function modelNamed(body: string): Model | null {
  try {
    const value: unknown = JSON.parse(body);
    const name = typeof value === 'object' && value !== null && 'model' in value ? value.model : null;
    return typeof name === 'string' ? (models.get(name) ?? null) : null;
  } catch {
    return null;
  }
}

async function post(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await textOf(request);
  const model = modelNamed(body);
  if (model === null) refuse(response, 404, 'model not found');
  else if (path === '/models/load') {
    if (model.status === 'unloaded') {
      void load(model);
      json(response, 200, { success: true });
    } else refuse(response, 400, 'model is already running');
  } else if (path === '/models/unload') {
    unload(model);
    json(response, 200, { success: true });
  } else if (await load(model)) pass(model, 'POST', path, body, response);
  else refuse(response, 500, `model name=${model.name} failed to load`);
}

function get(url: URL, response: ServerResponse): void {
  const asked = url.searchParams.get('model');
  if (asked !== null) {
    const model = models.get(asked);
    if (model?.status === 'loaded') pass(model, 'GET', url.pathname, null, response);
    else refuse(response, 400, 'model is not loaded');
  } else if (url.pathname === '/models/sse') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    streams.add(response);
    response.on('close', () => streams.delete(response));
  } else {
    const answers: Readonly<Record<string, unknown>> = {
      '/health': { status: 'ok' },
      '/props': { role: 'router', build_info: 'b11669-stand-in' },
      '/models': { data: [...models.values()].map(listed) },
    };
    const answer = answers[url.pathname];
    if (answer === undefined) refuse(response, 404, 'File Not Found');
    else json(response, 200, answer);
  }
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return address === null || typeof address === 'string' ? 0 : address.port;
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (request.method === 'POST') void post(url.pathname, request, response);
  else get(url, response);
});
server.listen(routerPort, '127.0.0.1');
