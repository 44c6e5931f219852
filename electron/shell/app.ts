/**
 * The desktop app around a runtime: one instance, one window, nothing of its own.
 *
 *   start ──another instance has the lock──► quit, and that one shows its window
 *     │
 *   ready ──► runtime (own or found) ──► window ──closed──► quit ──► runtime ends if it is ours ──► exit
 *                │ refused
 *                └──► told in a box ──► exit 1
 *
 * When a runtime that was attached to is lost, the window is opened to say so: nothing guards then.
 *
 * Until there is a tray, closing the window quits: an app that nobody can see or end is no guard.
 */

import { messageOf, type Result } from '../../shared/errors.ts';
import type { ElectronParts, ShellWindow } from './electron-parts.ts';
import { fenceContents, fenceSession } from './fence.ts';
import { serveIpc } from './ipc.ts';
import { answerPageRequest, PAGE_SCHEME, PAGE_URL } from './protocol.ts';
import type { RuntimeSource } from './runtime-source.ts';

export interface ShellOptions {
  readonly electron: ElectronParts;
  connect(): Promise<Result<RuntimeSource>>;
  /** The built page. */
  readonly pageDir: string;
  /** The built preload; absolute. */
  readonly preloadPath: string;
  /** How long a runtime may take to end before the app goes without it. */
  readonly stopLimitMs?: number;
  /** How long a runtime may be lost before the window opens to say so: a service restarts within it. */
  readonly lostLimitMs?: number;
}

/** In memory: what the page stores or caches ends with the app. */
const PARTITION = 'landlord';
const TITLE = 'VRAM Landlord';
const STOP_LIMIT_MS = 10_000;
const LOST_LIMIT_MS = 15_000;

/** Resolves when the window is open, or the app has been told to end. */
export async function startShell(options: ShellOptions): Promise<void> {
  const { electron } = options;
  const { app } = electron;
  if (!app.requestSingleInstanceLock()) {
    app.quit();
    return;
  }
  // The guard of the GPU's memory takes none of it. Both only count before the app is ready.
  app.disableHardwareAcceleration();
  app.enableSandbox();
  electron.protocol.registerSchemesAsPrivileged([PAGE_SCHEME]);

  let source: RuntimeSource | null = null;
  let window: ShellWindow | null = null;
  let ending = false;
  const ipc = serveIpc({
    ipcMain: electron.ipcMain,
    source: () => source,
    contents: () => window?.webContents ?? null,
  });

  const openWindow = async (): Promise<void> => {
    if (source === null || ending) return;
    const opened = electron.createWindow({
      title: TITLE,
      width: 1100,
      height: 720,
      minWidth: 360,
      minHeight: 320,
      show: false,
      webPreferences: {
        partition: PARTITION,
        preload: options.preloadPath,
        sandbox: true,
        contextIsolation: true,
        nodeIntegration: false,
        webviewTag: false,
        spellcheck: false,
      },
    });
    window = opened;
    opened.once('ready-to-show', () => opened.show());
    // A hidden window would keep a renderer and its memory; the page needs none to be opened again.
    opened.on('closed', () => {
      if (window !== opened) return;
      window = null;
      ipc.unwatch();
    });
    try {
      await opened.loadURL(PAGE_URL);
    } catch (error) {
      if (!ending) electron.dialog.showErrorBox(TITLE, `The page could not be opened: ${messageOf(error)}`);
    }
  };
  const showWindow = (): void => {
    if (window === null) {
      void openWindow();
      return;
    }
    if (window.isMinimized()) window.restore();
    window.show();
    window.focus();
  };

  app.on('web-contents-created', (_event, contents) => {
    fenceContents(contents, (address) => void electron.shell.openExternal(address));
  });
  app.on('second-instance', showWindow);
  app.on('window-all-closed', () => app.quit());
  app.on('will-quit', (event) => {
    if (ending) return;
    ending = true;
    if (source === null) return;
    // Electron does not wait for promises: the quit is taken back, and made good once all has ended.
    event.preventDefault();
    void within(source.stop(), options.stopLimitMs ?? STOP_LIMIT_MS).then((stopped) =>
      app.exit(stopped ? 0 : 1),
    );
  });

  await app.whenReady();
  electron.menu.setApplicationMenu(null);
  const pageSession = electron.session.fromPartition(PARTITION);
  fenceSession(pageSession);
  pageSession.protocol.handle(PAGE_SCHEME.scheme, (request) => answerPageRequest(request, options.pageDir));
  const connected = await options.connect();
  if (!connected.ok) {
    electron.dialog.showErrorBox(TITLE, connected.error.message);
    app.exit(1);
    return;
  }
  source = connected.value;
  // Told to quit while the runtime was starting: it must not outlive that.
  if (ending) {
    await within(source.stop(), options.stopLimitMs ?? STOP_LIMIT_MS);
    return;
  }
  let lostTimer: NodeJS.Timeout | undefined;
  source.onLink((link) => {
    clearTimeout(lostTimer);
    if (link.kind === 'lost') lostTimer = setTimeout(showWindow, options.lostLimitMs ?? LOST_LIMIT_MS);
  });
  await openWindow();
}

/** False when it failed, or took longer. */
function within(work: Promise<void>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    work.then(
      () => {
        clearTimeout(timer);
        resolve(true);
      },
      () => {
        clearTimeout(timer);
        resolve(false);
      },
    );
  });
}
