import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** A model as a test wants its server to have it; what a kind of server does not tell, it leaves out. */
export interface StagedModel {
  name: string;
  state: StagedState;
  busy?: boolean;
  contextTokens?: number;
  /** Memory the server claims. */
  bytes?: number;
  port?: number;
  pid?: number;
  args?: readonly string[];
  /** Epoch ms. */
  expiresAt?: number;
  /** Epoch ms. */
  lastUse?: number;
}

/** `odd`: a word of a version to come. */
export type StagedState = 'unloaded' | 'loading' | 'loaded' | 'sleeping' | 'stopping' | 'odd';

export interface Asked {
  readonly method: string;
  /** With its query, as sent. */
  readonly path: string;
  readonly body: unknown;
  readonly authorization: string | null;
}

export type Reply =
  | { readonly status?: number; readonly body: unknown }
  /** An event stream that stays open. */
  | 'stream'
  /** No answer, ever. */
  | 'hang';

export interface Stage {
  readonly models: Map<string, StagedModel>;
  /** A load or an unload that is held back until the test lets it go on. */
  holds: { load: Promise<void> | null; unload: Promise<void> | null };
  /** The next load is refused with these words. */
  refuses: string | null;
}

/** How a kind of server answers; undefined: a path it does not know. */
export type Script = (stage: Stage, asked: Asked) => Reply | undefined | Promise<Reply | undefined>;

export interface StagedServer extends AsyncDisposable {
  readonly url: string;
  readonly stage: Stage;
  readonly asked: Asked[];
  /** Takes the place of the script for every request; null: the script again. */
  instead: ((asked: Asked) => Reply) | null;
  put(...models: readonly StagedModel[]): void;
  send(event: unknown): void;
  streams(): number;
  down(): Promise<void>;
  up(): Promise<void>;
}

/** A real HTTP server on the loopback that answers as its script says. */
export async function serve(script: Script, notFound: Reply): Promise<StagedServer> {
  const asked: Asked[] = [];
  const streams = new Set<ServerResponse>();
  const stage: Stage = { models: new Map(), holds: { load: null, unload: null }, refuses: null };
  let instead: StagedServer['instead'] = null;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const one: Asked = {
      method: request.method ?? '',
      path: request.url ?? '',
      body: text === '' ? null : JSON.parse(text),
      authorization: request.headers.authorization ?? null,
    };
    asked.push(one);
    const reply = instead === null ? ((await script(stage, one)) ?? notFound) : instead(one);
    if (reply === 'hang') return;
    if (reply === 'stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      streams.add(response);
      response.on('close', () => streams.delete(response));
      return;
    }
    const { status = 200, body } = reply;
    const location = status >= 300 && status < 400 ? { location: '/elsewhere' } : {};
    response.writeHead(status, location).end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  const make = () => createServer((request, response) => void answer(request, response).catch(() => {}));
  let server = make();
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  const { port } = address;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${port}`,
    stage,
    asked,
    get instead() {
      return instead;
    },
    set instead(next) {
      instead = next;
    },
    put(...models) {
      stage.models.clear();
      for (const model of models) stage.models.set(model.name, model);
    },
    send(event) {
      for (const stream of streams) stream.write(`data: ${JSON.stringify(event)}\n\n`);
    },
    streams: () => streams.size,
    down: close,
    async up() {
      server = make();
      await listen(port);
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Moves a model to where a request asks it to, when the test lets it. */
export async function move(
  stage: Stage,
  name: unknown,
  what: 'load' | 'unload',
): Promise<{ readonly model: StagedModel | null; readonly refusal: string | null }> {
  const model = stage.models.get(String(name)) ?? null;
  if (model === null) return { model, refusal: null };
  const { refuses } = stage;
  if (what === 'load' && refuses !== null) {
    stage.refuses = null;
    return { model, refusal: refuses };
  }
  model.state = what === 'load' ? 'loading' : 'stopping';
  const goOn = (): void => {
    model.state = what === 'load' ? 'loaded' : 'unloaded';
  };
  const hold = stage.holds[what];
  if (hold === null) goOn();
  else await hold.then(goOn);
  return { model, refusal: null };
}
