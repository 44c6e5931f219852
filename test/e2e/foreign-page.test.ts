/**
 * A page of another site, in the browser of a person who has our page open too, tries all that a page
 * can: it must neither read anything of ours nor make anything happen.
 */
import { createServer, type Server } from 'node:http';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../electron/core/http/server.ts';
import { launchBrowser } from '../support/browser.ts';
import type { FakeRuntime } from '../support/fake-runtime.ts';
import { serveFake } from '../support/serve-fake.ts';

let browser: Browser;
let context: BrowserContext;
let ours: HttpServer;
let runtime: FakeRuntime;
let theirs: Server;
let theirPort = 0;
/** Requests of `/v1` that were let in. */
let served = 0;

beforeAll(async () => {
  ({ server: ours, runtime } = await serveFake({
    gateway: {
      addRoutes: (app) => {
        app.all('/v1/*', async () => {
          served += 1;
          return { ok: true };
        });
      },
      handle: async (_request, response) => {
        served += 1;
        response.end('{}');
      },
      metrics: async () => '',
    },
  }));
  theirs = createServer((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<!doctype html><title>their page</title><body>');
  });
  await new Promise<void>((resolve) => theirs.listen(0, '127.0.0.1', resolve));
  const address = theirs.address();
  theirPort = typeof address === 'object' && address !== null ? address.port : 0;
  browser = await launchBrowser();
  context = await browser.newContext();
  // The person's own page: its cookie is in this browser from now on.
  const own = await context.newPage();
  await own.goto(ours.openUrl());
});
afterAll(async () => {
  await browser?.close();
  theirs?.closeAllConnections();
  await new Promise((resolve) => theirs.close(resolve));
  await ours?.stop();
});
beforeEach(() => {
  runtime.commands.length = 0;
  served = 0;
});

/** What scripts of a page get of an address: `read …` when anything of the answer is theirs. */
async function attempts(page: Page, base: string): Promise<Readonly<Record<string, string>>> {
  return await page.evaluate(async (url) => {
    const got: Record<string, string> = {};
    const attempt = async (name: string, act: () => Promise<string>): Promise<void> => {
      got[name] = await act().catch((error: unknown) => `refused: ${String(error)}`);
    };
    const read = async (path: string, init: RequestInit): Promise<string> => {
      const answer = await fetch(`${url}${path}`, { ...init, credentials: 'include' });
      const text = await answer.text();
      if (answer.type === 'opaque') return 'nothing to read';
      return answer.ok ? `read ${text.slice(0, 100)}` : `refused: ${answer.status}`;
    };
    const json = { 'content-type': 'application/json' };
    await attempt('GET state', () => read('/api/state', {}));
    await attempt('GET page', () => read('/', {}));
    await attempt('GET events', () => read('/api/events?json=1', {}));
    await attempt('POST json', () => read('/api/drain', { method: 'POST', headers: json, body: '{}' }));
    await attempt('POST text', () => read('/api/drain', { method: 'POST', body: '{}' }));
    await attempt('POST empty', () => read('/api/drain', { method: 'POST' }));
    await attempt('POST blind', () => read('/api/drain', { method: 'POST', mode: 'no-cors', body: '{}' }));
    await attempt('GET blind', () => read('/api/state', { mode: 'no-cors' }));
    await attempt('a turn, blind', () =>
      read('/v1/chat/completions', { method: 'POST', mode: 'no-cors', body: '{"model":"m"}' }),
    );
    await attempt('a turn', () =>
      read('/v1/chat/completions', { method: 'POST', headers: json, body: '{"model":"m"}' }),
    );
    await attempt('models', () => read('/v1/models', {}));
    await attempt('metrics', () => read('/metrics', {}));
    await attempt('beacon', async () => {
      navigator.sendBeacon(`${url}/api/drain`, new Blob(['{}'], { type: 'text/plain' }));
      return 'nothing to read';
    });
    await attempt(
      'EventSource',
      () =>
        new Promise((resolve) => {
          const source = new EventSource(`${url}/api/stream`, { withCredentials: true });
          source.onmessage = ({ data }) => resolve(`read ${String(data).slice(0, 50)}`);
          source.addEventListener('state', () => resolve('read a state'));
          source.onerror = () => {
            source.close();
            resolve('refused');
          };
        }),
    );
    await attempt(
      'WebSocket',
      () =>
        new Promise((resolve) => {
          const socket = new WebSocket(`${url.replace('http', 'ws')}/api/stream`);
          socket.onopen = () => resolve('read: it is open');
          socket.onerror = () => resolve('refused');
        }),
    );
    const loaded = (tag: 'img' | 'script' | 'link', path: string): Promise<string> =>
      new Promise((resolve) => {
        const element = document.createElement(tag);
        element.onload = () => resolve('read: it was loaded');
        element.onerror = () => resolve('refused');
        if (tag === 'link') {
          element.setAttribute('rel', 'stylesheet');
          element.setAttribute('href', `${url}${path}`);
        } else element.setAttribute('src', `${url}${path}`);
        document.body.append(element);
      });
    await attempt('script', () => loaded('script', '/api/state'));
    await attempt('image', () => loaded('img', '/api/models/a%2Fb/unload'));
    await attempt('style', () => loaded('link', '/api/state'));
    for (const enctype of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'])
      await attempt(
        `form ${enctype}`,
        () =>
          new Promise((resolve) => {
            const frame = document.createElement('iframe');
            frame.name = `f${Math.random()}`;
            document.body.append(frame);
            const form = document.createElement('form');
            Object.assign(form, { method: 'post', action: `${url}/api/drain`, target: frame.name, enctype });
            const field = document.createElement('input');
            Object.assign(field, { name: '{"a":"', value: '"}' });
            form.append(field);
            document.body.append(form);
            frame.onload = () => {
              let text = '';
              try {
                text = frame.contentDocument?.body.textContent ?? '';
              } catch {
                // Another origin's.
              }
              resolve(text === '' ? 'nothing to read' : `read ${text.slice(0, 50)}`);
            };
            form.submit();
          }),
      );
    await attempt(
      'frame',
      () =>
        new Promise((resolve) => {
          const frame = document.createElement('iframe');
          frame.src = `${url}/`;
          frame.onload = () => {
            try {
              resolve(
                frame.contentDocument === null ? 'nothing to read' : `read ${frame.contentDocument.title}`,
              );
            } catch {
              resolve('nothing to read');
            }
          };
          document.body.append(frame);
        }),
    );
    return got;
  }, base);
}

function expectNothing(got: Readonly<Record<string, string>>): void {
  expect(Object.keys(got).length).toBeGreaterThanOrEqual(20);
  for (const [name, what] of Object.entries(got)) expect(what, name).toMatch(/^(refused|nothing to read)/);
  expect(runtime.commands).toEqual([]);
  expect(runtime.reported).toEqual([]);
  expect(served).toBe(0);
}

describe('a page of another site', () => {
  it('at another port of this machine, which counts as the same site and has our cookie, reads and does nothing', async () => {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${theirPort}/`);
    expectNothing(await attempts(page, ours.url));
    await page.close();
  });

  it('of another name reads and does nothing, by any name of ours', async () => {
    const page = await context.newPage();
    await page.goto(`http://their.localhost:${theirPort}/`);
    expectNothing(await attempts(page, ours.url));
    expectNothing(await attempts(page, `http://localhost:${ours.port}`));
    await page.close();
  });

  it('whose name points to this machine once it is loaded (DNS rebinding) reads and does nothing', async () => {
    const page = await context.newPage();
    // Every name under localhost is this machine's, so it resolves to us; the first answer is theirs.
    const origin = `http://rebound.localhost:${ours.port}`;
    await page.route(`${origin}/lure`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>their page</title><body>' }),
    );
    await page.goto(`${origin}/lure`);
    const got = await attempts(page, '');
    const { frame: _frame, WebSocket: _socket, ...rest } = got;
    for (const [name, what] of Object.entries(rest))
      expect(what, name).toMatch(/^(refused|nothing to read|read \{"error":\{"code":"forbidden_host")/);
    expect(runtime.commands).toEqual([]);
    expect(served).toBe(0);
    await page.close();
  });

  it('of a file has no origin, and reads and does nothing', async () => {
    const page = await context.newPage();
    await page.goto('data:text/html,<!doctype html><title>their page</title><body>');
    expectNothing(await attempts(page, ours.url));
    await page.close();
  });

  it('can be told apart from our own page, which reads and acts', async () => {
    const page = await context.newPage();
    await page.goto(`${ours.url}/`);
    const got = await page.evaluate(async () => {
      const state = await fetch('/api/state');
      const done = await fetch('/api/drain', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      return [state.status, done.status];
    });
    expect(got).toEqual([200, 200]);
    expect(runtime.commands).toEqual([{ type: 'drain' }]);
    await page.close();
  });
});
