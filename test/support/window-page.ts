/**
 * The app's window in real Chromium: the built page and the built preload over the real main code, which
 * runs here with the stand-in Electron. Only the transport between the two is not Electron's: what the
 * preload invokes is carried to `ipcMain`, and what main sends to the window's contents is carried back.
 *
 *   page ── window.landlord ── preload ── ipcRenderer (stand-in) ══ exposeBinding ══► ipcMain (stand-in) ── main
 *   page ◄─ listener ── preload ── ipcRenderer (stand-in) ◄══ evaluate ══ webContents.send (stand-in) ── main
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContextBridge, IpcRenderer } from 'electron';
import type { Browser, BrowserContext, Frame, Page } from 'playwright-core';
import { bundlePreload } from '../../build/package/bundle.ts';
import { startShell } from '../../electron/shell/app.ts';
import { PAGE_URL } from '../../electron/shell/protocol.ts';
import type { RuntimeSource } from '../../electron/shell/runtime-source.ts';
import { ok } from '../../shared/errors.ts';
import { createFakeElectron, type FakeElectron, type FakeWindow } from '../fakes/electron.ts';
import { pageDir } from './page-server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Chromium knows no `app:` of ours here; this host is answered by the app's own handler in its place. */
const STAND_IN = 'http://landlord.localhost/';

export interface WindowPage {
  readonly page: Page;
  readonly electron: FakeElectron;
  readonly window: FakeWindow;
  /** The address of each request for a file of the page, as the app's handler got it. */
  readonly requested: readonly string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** The preload as the package has it, built once for a test file. */
export async function builtPreload(): Promise<{ readonly code: string } & Disposable> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-preload-'));
  const code = readFileSync(await bundlePreload(root, folder), 'utf8');
  return { code, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

export async function openWindowPage(
  browser: Browser,
  preload: string,
  source: RuntimeSource,
): Promise<WindowPage> {
  const electron = createFakeElectron();
  const started = startShell({
    electron,
    connect: async () => ok(source),
    pageDir,
    preloadPath: '/built/preload.cjs',
    stopLimitMs: 50,
  });
  electron.ready();
  await started;
  const [window] = electron.windows;
  if (window === undefined) throw new Error('The shell opened no window.');

  const context = await browser.newContext({ reducedMotion: 'reduce' });
  const page = await context.newPage();
  const requested: string[] = [];
  await serveApp(context, electron, requested);
  await carryCalls(context, electron, window);
  await context.addInitScript(preloadScript(preload));
  window.webContents.carry = (channel, ...args) => {
    const receive = ([name, values]: [string, readonly unknown[]]): void => {
      Reflect.get(globalThis, 'receiveFromMain')?.(name, values);
    };
    // A page that is going away takes no more messages.
    page.evaluate(receive, [channel, args] as [string, readonly unknown[]]).catch(() => {});
  };
  await page.goto(STAND_IN);
  return {
    page,
    electron,
    window,
    requested,
    async [Symbol.asyncDispose]() {
      window.webContents.carry = null;
      await context.close();
      electron.quits();
    },
  };
}

/** Files and headers come from the handler that the shell registered for `app:`. */
async function serveApp(context: BrowserContext, electron: FakeElectron, requested: string[]): Promise<void> {
  const handler = electron.served.get('landlord app');
  if (handler === undefined) throw new Error('The shell serves no page.');
  await context.route(`${STAND_IN}**`, async (route) => {
    const address = PAGE_URL + route.request().url().slice(STAND_IN.length);
    requested.push(address);
    // A Request of Node knows no custom scheme's body or mode; address and method are what is looked at.
    const request = Object.create(Request.prototype, {
      url: { value: address },
      method: { value: route.request().method() },
    });
    const answer = await handler(request);
    await route.fulfill({
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      body: Buffer.from(await answer.arrayBuffer()),
    });
  });
}

/** The frame that really asks is told to main as Electron would tell it. */
async function carryCalls(
  context: BrowserContext,
  electron: FakeElectron,
  window: FakeWindow,
): Promise<void> {
  await context.exposeBinding(
    'askMain',
    ({ frame }: { frame: Frame }, channel: string, args: readonly unknown[]) => {
      const parent = frame.parentFrame();
      const url = frame.url().replace(STAND_IN, PAGE_URL);
      const senderFrame = { url, parent: parent === null ? null : Object.create(null) };
      return electron.ipcMain.invoke(window.sender({ senderFrame }), channel, ...args);
    },
  );
}

/** Wraps the CommonJS preload as Electron's sandbox does: with a `require` that knows 'electron' alone. */
function preloadScript(code: string): string {
  return `(() => {
    const listeners = new Map();
    Object.defineProperty(globalThis, 'receiveFromMain', {
      value: (channel, args) => { for (const one of [...(listeners.get(channel) ?? [])]) one({}, ...args); },
    });
    const ipcRenderer = (${rendererStandIn.toString()})(listeners, globalThis.askMain);
    const contextBridge = (${bridgeStandIn.toString()})(globalThis);
    const require = (name) => {
      if (name !== 'electron') throw new Error('module not found: ' + name);
      return { ipcRenderer, contextBridge };
    };
    const module = { exports: {} };
    ((require, module, exports) => {${code}\n})(require, module, module.exports);
  })();`;
}

type Listener = Parameters<IpcRenderer['on']>[1];

/** Runs in the page. As much of ipcRenderer as a sandboxed preload uses. */
function rendererStandIn(
  listeners: Map<string, Set<Listener>>,
  askMain: (channel: string, args: readonly unknown[]) => Promise<unknown>,
): Pick<IpcRenderer, 'invoke'> & {
  on(channel: string, listener: Listener): void;
  off(channel: string, listener: Listener): void;
} {
  return {
    invoke: (channel, ...args) => askMain(channel, args),
    on(channel, listener) {
      const set = listeners.get(channel) ?? new Set();
      listeners.set(channel, set.add(listener));
    },
    off(channel, listener) {
      listeners.get(channel)?.delete(listener);
    },
  };
}

/**
 * Runs in the page. Like contextBridge it passes frozen copies and functions, and data by structured
 * clone; what can't be cloned fails here as it would there.
 */
function bridgeStandIn(page: object): Pick<ContextBridge, 'exposeInMainWorld'> {
  const cross = (value: unknown): unknown => {
    if (typeof value === 'function') {
      return (...args: readonly unknown[]) => {
        const made: unknown = value(...args.map(cross));
        return made instanceof Promise ? made.then(cross) : cross(made);
      };
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(cross);
    if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value);
    return Object.freeze(Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cross(one)])));
  };
  return {
    exposeInMainWorld: (name, api) => {
      Object.defineProperty(page, name, { value: cross(api), enumerable: true });
    },
  };
}
