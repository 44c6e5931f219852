/**
 * The desktop app around a runtime: one instance, one window, a tray, nothing of its own.
 *
 *   start ──another instance has the lock──► quit, and that one shows its window
 *     │
 *   ready ──► runtime (own or found) ──► tray, window ──quit──► runtime ends if it is ours ──► exit
 *                │ refused
 *                └──► told in a box ──► exit 1
 *
 * When a runtime that was attached to is lost, the window is opened to say so: nothing guards then.
 * Where no tray shows the app, closing the window quits: one that nobody can see or end is no guard.
 */

import type { Result } from '../../shared/errors.ts';
import { HIDDEN_SWITCH } from './autostart.ts';
import type { Desk, DeskWindow } from './desk.ts';
import type { ElectronParts } from './electron-parts.ts';
import { fenceContents, fenceSession } from './fence.ts';
import { serveIpc } from './ipc.ts';
import { answerPageRequest, PAGE_SCHEME } from './protocol.ts';
import type { RuntimeSource } from './runtime-source.ts';
import { PageWindow } from './window.ts';

export interface DeskHost {
  readonly source: RuntimeSource;
  readonly window: DeskWindow;
  quit(): void;
}

export interface ShellOptions {
  readonly electron: ElectronParts;
  connect(): Promise<Result<RuntimeSource>>;
  /** The tray and what goes with it; absent: the window alone. */
  makeDesk?(host: DeskHost): Promise<Pick<Desk, 'start' | 'onClose' | 'hidden' | 'windowShown' | 'stop'>>;
  /** Started by the session: the window stays away where the tray shows the app. */
  readonly hidden?: boolean;
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
/** Servers that it runs are given ten seconds to end, and then ended; the engine takes up to eight more. */
const STOP_LIMIT_MS = 30_000;
const LOST_LIMIT_MS = 15_000;
const NO_SANDBOX =
  'It does not run without its sandbox, which this system does not let it set up here. Install the deb package, which can, or use `landlord serve`.';

/** Resolves when the window is open, or the app has been told to end. */
export async function startShell(options: ShellOptions): Promise<void> {
  const { electron } = options;
  const { app } = electron;
  if (!app.requestSingleInstanceLock()) {
    app.quit();
    return;
  }
  // An AppImage's launcher adds this by itself where the kernel keeps user namespaces from programs.
  if (app.commandLine.hasSwitch('no-sandbox')) {
    electron.dialog.showErrorBox(TITLE, NO_SANDBOX);
    app.exit(1);
    return;
  }
  // The guard of the GPU's memory takes none of it. Both only count before the app is ready.
  app.disableHardwareAcceleration();
  app.enableSandbox();
  electron.protocol.registerSchemesAsPrivileged([PAGE_SCHEME]);

  let source: RuntimeSource | null = null;
  let desk: Awaited<ReturnType<NonNullable<ShellOptions['makeDesk']>>> | null = null;
  let ending = false;
  /** Electron closes the windows first when it is told to quit: that is no person closing one. */
  let leaving = false;
  const onClose = (): 'hide' | 'quit' | 'minimize' => desk?.onClose() ?? 'quit';
  const window: PageWindow = new PageWindow({
    electron,
    preloadPath: options.preloadPath,
    partition: PARTITION,
    title: TITLE,
    mayOpen: () => source !== null && !leaving && !ending,
    onClose,
    onGone: () => {
      ipc.unwatch();
      if (!leaving && !ending && onClose() === 'hide') desk?.hidden();
    },
    onFront: () => desk?.windowShown(),
  });
  const ipc = serveIpc({
    ipcMain: electron.ipcMain,
    source: () => source,
    contents: () => window.contents,
  });
  const showWindow = (): void => void window.open({ kind: 'home' });

  app.on('web-contents-created', (_event, contents) => {
    fenceContents(contents, (address) => void electron.shell.openExternal(address));
  });
  app.on('second-instance', (_event, argv) => {
    if (!argv.includes(HIDDEN_SWITCH)) showWindow();
  });
  app.on('window-all-closed', () => {
    if (onClose() !== 'hide') app.quit();
  });
  app.on('before-quit', () => {
    leaving = true;
  });
  app.on('will-quit', (event) => {
    if (ending) return;
    ending = true;
    desk?.stop();
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
  desk =
    (await options.makeDesk?.({
      source,
      window: {
        open: (place) => void window.open(place),
        isOpen: () => window.isOpen(),
        isInFront: () => window.isInFront(),
      },
      quit: () => app.quit(),
    })) ?? null;
  // A tray that shows itself late must not keep the window waiting.
  const shown = desk?.start();
  if (options.hidden === true && shown !== undefined) await shown;
  else await window.open({ kind: 'home' });
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
