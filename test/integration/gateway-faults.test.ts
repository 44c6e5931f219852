import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { tryTurn } from '../../electron/core/gate/index.ts';
import { entry, ROUTER_PROPS } from '../support/fake-llama.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { listen, type RawAnswer, rawRequest } from '../support/upstream.ts';

/** A router that has a bad day, behind the whole gateway and its front port. */
const OK = 'HTTP/1.1 200 OK\r\n';
const STREAM = `${OK}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n`;
const PAGE = '<html><body>Internal Server Error</body></html>';
const ANSWER = '{"ok":true}';
const EVENTS = Buffer.from('event: mess\u00e4ge\ndata: {"t":"\u{1f600} \u4e2d"}\r\n\r\ndata: [DONE]\n\n');
const PACKED = gzipSync('{"a":1}');
const gates = mkdtempSync(join(tmpdir(), 'landlord-gates-'));

/** Requests for the model since the test began, and connections of them that were cut off. */
const seen: { readonly scenario: string; readonly body: Buffer }[] = [];
let cut = 0;
let landlord: LandlordBench;
let url = '';
let front = 0;

function chunk(part: string | Buffer): Buffer {
  const bytes = Buffer.from(part);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

function whole(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function inPieces(socket: Socket, pieces: readonly (string | Buffer)[], everyMs = 0): void {
  const [first, ...others] = pieces;
  if (first === undefined || socket.destroyed) return;
  socket.write(first);
  if (everyMs === 0) setImmediate(() => inPieces(socket, others));
  else setTimeout(() => inPieces(socket, others, everyMs), everyMs);
}

/** What the backend does to its nth request of a scenario. */
const SCENARIOS: Readonly<Record<string, (socket: Socket, nth: number) => void>> = {
  'slow headers': (socket) => inPieces(socket, [...whole('200 OK', ANSWER)], 2),
  stalled: (socket) => socket.write(Buffer.concat([Buffer.from(STREAM), chunk('data: 1\n\n')])),
  'reset before a byte': (socket, nth) => {
    if (nth === 1) socket.resetAndDestroy();
    else socket.write(whole('200 OK', ANSWER));
  },
  'reset always': (socket) => void socket.resetAndDestroy(),
  'reset in the middle': (socket) => {
    socket.write(Buffer.concat([Buffer.from(STREAM), chunk('data: half\n\n')]));
    setTimeout(() => socket.resetAndDestroy(), 50);
  },
  'child died': (socket, nth) => {
    const body = '{"error":{"code":500,"message":"proxy error: Failed to read connection"}}';
    socket.write(nth === 1 ? whole('500 Internal Server Error', body) : whole('200 OK', ANSWER));
  },
  html: (socket) =>
    socket.write(
      `HTTP/1.1 500 Oh Dear\r\nContent-Type: text/html\r\nContent-Length: ${PAGE.length}\r\n\r\n${PAGE}`,
    ),
  'cut letters': (socket) =>
    inPieces(socket, [STREAM, ...Array.from(EVENTS, (byte) => chunk(Buffer.from([byte]))), '0\r\n\r\n']),
  gzip: (socket) =>
    socket.write(
      Buffer.concat([
        Buffer.from(`${OK}Content-Encoding: gzip\r\nContent-Length: ${PACKED.length}\r\n\r\n`),
        PACKED,
      ]),
    ),
  'http/1.0': (socket) => socket.end('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold but whole'),
  'many chunks': (socket) => {
    let index = 0;
    const more = (): void => {
      while (index < 100_000) {
        index += 1;
        if (!socket.write(chunk(`data: ${index}\n\n`))) {
          socket.once('drain', more);
          return;
        }
      }
      socket.write('0\r\n\r\n');
    };
    socket.write(STREAM);
    more();
  },
  'long upload': (socket) => socket.write(whole('200 OK', ANSWER)),
};

const backend = http.createServer((asked, response) => {
  const path = (asked.url ?? '').split('?')[0];
  const json = (value: unknown): void => void response.writeHead(200).end(JSON.stringify(value));
  if (path === '/props') return json(ROUTER_PROPS);
  if (path === '/models') return json({ data: [entry('m', 'loaded')] });
  if (!path?.startsWith('/v1/')) return void response.writeHead(404).end('{}');
  const scenario = String(asked.headers['x-scenario'] ?? 'long upload');
  const parts: Buffer[] = [];
  asked.on('data', (part: Buffer) => parts.push(part));
  asked.on('end', () => {
    const nth = seen.push({ scenario, body: Buffer.concat(parts) });
    asked.socket.once('close', () => {
      cut += 1;
    });
    SCENARIOS[scenario]?.(asked.socket, nth);
  });
});
backend.on('clientError', () => undefined);

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = gates;
  url = `http://127.0.0.1:${await listen(backend)}`;
  front = await freePort();
  landlord = await startLandlordBench({
    routerUrl: url,
    routerPid: () => null,
    totalBytes: 24_000_000_000,
    footprints: {},
    backend: `  - { name: router, kind: llama.cpp, url: "${url}", lanes: 1, front: ${front} }`,
    pace: { keepAliveMs: { first: 30, every: 30 } },
    config: 'agents: { hasty: { onBusy: reject } }\nserver: { origins: ["https://chat.example"] }',
  });
  await landlord.seen();
  await landlord.is('router/m', 'loaded');
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  backend.closeAllConnections();
  await new Promise((resolve) => backend.close(resolve));
  rmSync(gates, { recursive: true, force: true });
});

beforeEach(() => {
  seen.length = 0;
  cut = 0;
});

function gatewayPort(): number {
  return Number(new URL(landlord.runtime.url).port);
}

function ask(
  scenario: string,
  port = gatewayPort(),
  onData?: (chunk: Buffer, request: http.ClientRequest) => void,
): Promise<RawAnswer> {
  return rawRequest(port, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', 'x-scenario': scenario },
    body: '{"model":"m","messages":[]}',
    ...(onData === undefined ? {} : { onData }),
  });
}

describe('whatever a backend sends reaches the client byte for byte, at either port', () => {
  const ports = { 'the gateway': gatewayPort, 'the front port': () => front };
  for (const [where, port] of Object.entries(ports)) {
    it(`through ${where}`, async () => {
      const slow = await ask('slow headers', port());
      expect([slow.status, slow.body.toString()]).toEqual([200, ANSWER]);
      const letters = await ask('cut letters', port());
      expect(letters.whole).toBe(true);
      expect(letters.body.equals(EVENTS)).toBe(true);
      const packed = await ask('gzip', port());
      expect(packed.headers['content-encoding']).toBe('gzip');
      expect(packed.body.equals(PACKED)).toBe(true);
      const old = await ask('http/1.0', port());
      expect([old.whole, old.body.toString()]).toEqual([true, 'old but whole']);
      const many = await ask('many chunks', port());
      const expected = createHash('sha256');
      for (let index = 1; index <= 100_000; index += 1) expected.update(`data: ${index}\n\n`);
      expect(createHash('sha256').update(many.body).digest('hex')).toBe(expected.digest('hex'));
      seen.length = 0;
      const page = await ask('html', port());
      expect([page.status, page.headers['content-type'], page.body.toString()]).toEqual([
        500,
        'text/html',
        PAGE,
      ]);
      expect(seen).toHaveLength(1);
    });
  }
});

describe('a backend that breaks off', () => {
  it('before a byte is asked once more, unseen by the client', async () => {
    const answer = await ask('reset before a byte');
    expect([answer.status, answer.body.toString()]).toEqual([200, ANSWER]);
    expect(seen).toHaveLength(2);
    seen.length = 0;
    expect((await ask('child died')).body.toString()).toBe(ANSWER);
    expect(seen).toHaveLength(2);
  });

  it('before a byte and again is not asked a third time', async () => {
    const answer = await ask('reset always');
    expect(answer.status).toBe(502);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(JSON.parse(answer.body.toString()).error.code).toBe('backend_unreachable');
    expect(seen).toHaveLength(2);
  });

  it('in the middle is never asked again, and half an answer does not look whole', async () => {
    const answer = await ask('reset in the middle');
    expect(answer.whole).toBe(false);
    expect(answer.body.toString()).toBe('data: half\n\n');
    expect(seen).toHaveLength(1);
  });

  it('or stands still is left at once when its client leaves, and so is its lane', async () => {
    await ask('stalled', gatewayPort(), (_part, request) => request.destroy());
    await until(() => cut === 1, 5_000, 'the backend to be left');
    expect((await ask('slow headers')).status).toBe(200);
  });
});

describe('a stream that has heard comments', () => {
  /** Its answer, from behind the comments; the backend is let at it after the first. */
  const waited = async (scenario: string, path: string): Promise<RawAnswer> => {
    const lane = tryTurn(url, { session: 'elsewhere', reports: false });
    expect(lane.kind).toBe('held');
    const answer = await rawRequest(gatewayPort(), {
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', 'x-scenario': scenario },
      body: '{"model":"m","stream":true}',
      onData: () => lane[Symbol.dispose](),
    });
    expect(answer.body.toString()).toMatch(/^: waiting/);
    return { ...answer, body: Buffer.from(answer.body.toString().replaceAll(/^:[^\n]*\n\n/gm, '')) };
  };

  it('is told what goes wrong in one of its client’s own events, never in a page or half a head', async () => {
    for (const [scenario, path, begins] of [
      ['html', '/v1/chat/completions', 'data: {"error":{"message":"The backend answered 500: <html>'],
      ['html', '/v1/messages', 'event: error\ndata: {"type":"error","error":{"type":"api_error"'],
      ['reset always', '/v1/chat/completions', 'data: {"error":{"message":"The backend router'],
      ['reset always', '/v1/messages', 'event: error\ndata: {"type":"error","error":{"type":"api_error"'],
    ] as const) {
      const answer = await waited(scenario, path);
      expect(answer.status, scenario).toBe(200);
      expect(answer.body.toString().startsWith(begins), answer.body.toString()).toBe(true);
      expect(answer.body.toString().endsWith('\n\n')).toBe(true);
    }
  });

  it('has its backend’s own bytes behind them, and a retry unseen', async () => {
    expect((await waited('cut letters', '/v1/chat/completions')).body.equals(EVENTS)).toBe(true);
    seen.length = 0;
    expect((await waited('child died', '/v1/chat/completions')).body.toString()).toBe(ANSWER);
    expect(seen).toHaveLength(2);
  });
});

describe('uploads', () => {
  const form = (model: string, bytes: number): Buffer =>
    Buffer.concat([
      Buffer.from(
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n',
      ),
      Buffer.alloc(bytes, 'R'),
      Buffer.from(`\r\n--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--x--\r\n`),
    ]);
  const send = (path: string, body: Buffer, headers: Readonly<Record<string, string>> = {}) =>
    rawRequest(gatewayPort(), {
      method: 'POST',
      path,
      headers: { 'content-type': 'multipart/form-data; boundary=x', ...headers },
      body,
    });

  it('of sound and pictures find their model behind the file, in its own name, and change nothing else', async () => {
    for (const path of ['/v1/audio/transcriptions', '/v1/images/edits']) {
      const answer = await send(path, form('router/m', 3_000_000));
      expect(answer.status, answer.body.toString()).toBe(200);
      expect(answer.headers['x-landlord-turn']).toMatch(/^\w+-\w+$/);
      expect(seen.at(-1)?.body.equals(form('m', 3_000_000))).toBe(true);
    }
    const speech = await rawRequest(gatewayPort(), {
      method: 'POST',
      path: '/v1/audio/speech',
      headers: { 'content-type': 'application/json' },
      body: '{"input":"hello","model":"router/m"}',
    });
    expect(speech.status).toBe(200);
    expect(seen.at(-1)?.body.toString()).toBe('{"input":"hello","model":"m"}');
  });

  it('over 64 MiB are refused with 413, whether they say so before or not', async () => {
    const long = form('m', 64 * 1024 * 1024);
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const answer = await send('/v1/audio/transcriptions', long, headers);
      expect(answer.status).toBe(413);
    }
    expect(seen).toHaveLength(0);
    // The model is known here before the limit is passed, so it is on its way already.
    const image = Buffer.concat([Buffer.from('{"model":"m","x":"'), Buffer.alloc(70 * 1024 * 1024, 'A')]);
    const late = await send('/v1/responses', image, {
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
    });
    expect(late.status).toBe(413);
  });
});

describe('a page of another origin', () => {
  const from = (origin: string, method: string, path: string, more: Readonly<Record<string, string>> = {}) =>
    rawRequest(gatewayPort(), {
      method,
      path,
      headers: { origin, 'sec-fetch-site': 'cross-site', ...more },
    });
  const PREFLIGHT = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization',
  };

  it('that is listed may use /v1, for answers, refusals and questions before them', async () => {
    const asked = await from('https://chat.example', 'OPTIONS', '/v1/chat/completions', PREFLIGHT);
    expect(asked.status).toBe(204);
    expect(asked.headers['access-control-allow-headers']).toBe('authorization');
    for (const path of ['/v1/models', '/v1/models/m', '/v1/anything?model=nobody']) {
      const answer = await from('https://chat.example', 'GET', path);
      expect(answer.headers['access-control-allow-origin'], path).toBe('https://chat.example');
    }
    expect((await from('https://chat.example', 'GET', '/metrics')).status).toBe(403);
  });

  it('that is not gets nothing, and no word of leave', async () => {
    for (const [method, path] of [
      ['OPTIONS', '/v1/chat/completions'],
      ['GET', '/v1/models'],
    ] as const) {
      const refused = await from('https://evil.example', method, path, PREFLIGHT);
      expect(refused.status).toBe(403);
      expect(refused.headers['access-control-allow-origin']).toBeUndefined();
    }
  });
});

describe('the official clients try no refusal again', () => {
  it('whatever it is for', async () => {
    let tries = 0;
    const counted: typeof fetch = (url, init) => {
      tries += 1;
      return fetch(url, init);
    };
    const openai = (scenario: string): OpenAI =>
      new OpenAI({
        apiKey: 'none',
        baseURL: `${landlord.runtime.url}/v1`,
        defaultHeaders: { 'x-scenario': scenario, 'x-landlord-session': 'hasty' },
        fetch: counted,
      });
    const anthropic = (scenario: string): Anthropic =>
      new Anthropic({
        apiKey: 'none',
        baseURL: landlord.runtime.url,
        defaultHeaders: { 'x-scenario': scenario, 'x-landlord-session': 'hasty' },
        fetch: counted,
      });
    const messages = [{ role: 'user' as const, content: 'a' }];
    const chat = (scenario: string, model: string) =>
      openai(scenario)
        .chat.completions.create({ model, messages })
        .catch((error: unknown) => error);
    const message = (scenario: string, model: string) =>
      anthropic(scenario)
        .messages.create({ model, messages, max_tokens: 2 })
        .catch((error: unknown) => error);
    for (const say of [chat, message]) {
      for (const [scenario, model, status] of [
        ['reset always', 'm', 502],
        ['html', 'nobody', 404],
      ] as const) {
        tries = 0;
        const refused = await say(scenario, model);
        expect(refused).toMatchObject({ status });
        expect(tries, `${say.name} ${status}`).toBe(1);
      }
    }
  });
});
