/**
 * The one window. It is made when it is to be seen and gone when it is closed: a hidden one would keep a
 * renderer and its memory, and the page needs neither to be opened again.
 *
 *   none ──open──► shown ──close──► none        where a tray shows the app
 *                    ├────────────► minimized   where none does, and so set
 *                    └────────────► the app quits
 */
import { messageOf } from '../../shared/errors.ts';
import type { Place } from '../../shared/tray-entry.ts';
import type { ElectronParts, ShellWindow } from './electron-parts.ts';
import { PAGE_URL } from './protocol.ts';

export interface PageWindowOptions {
  readonly electron: Pick<ElectronParts, 'createWindow' | 'dialog'>;
  readonly preloadPath: string;
  readonly partition: string;
  readonly title: string;
  /** Whether a window may be opened and kept; false while the app starts and ends. */
  readonly mayOpen: () => boolean;
  readonly onClose: () => 'hide' | 'quit' | 'minimize';
  /** It has gone; whether the app goes on is for `onClose` to say. */
  readonly onGone: () => void;
  readonly onFront: () => void;
}

/** The address of a place in the page. */
export function addressOf(place: Place): string {
  switch (place.kind) {
    case 'home':
      return PAGE_URL;
    case 'event':
      return `${PAGE_URL}#event-${place.id}`;
    default:
      return `${PAGE_URL}#${place.kind}`;
  }
}

export class PageWindow {
  readonly #options: PageWindowOptions;
  #window: ShellWindow | null = null;

  constructor(options: PageWindowOptions) {
    this.#options = options;
  }

  get contents(): ShellWindow['webContents'] | null {
    return this.#window?.webContents ?? null;
  }

  isOpen(): boolean {
    return this.#window !== null;
  }

  isInFront(): boolean {
    const shown = this.#window;
    return shown?.isFocused() === true && !shown.isMinimized();
  }

  /** Resolves when its page is loaded, or could not be. */
  async open(place: Place): Promise<void> {
    if (!this.#options.mayOpen()) return;
    const shown = this.#window;
    if (shown === null) {
      await this.#create(place);
      return;
    }
    if (shown.isMinimized()) shown.restore();
    shown.show();
    shown.focus();
    // Only what follows the `#` differs, so that the page stays and is told.
    if (place.kind !== 'home') await this.#load(shown, place);
  }

  async #create(place: Place): Promise<void> {
    const { electron, preloadPath, partition, title, mayOpen, onClose, onGone, onFront } = this.#options;
    const opened = electron.createWindow({
      title,
      width: 1100,
      height: 720,
      minWidth: 360,
      minHeight: 320,
      show: false,
      webPreferences: {
        partition,
        preload: preloadPath,
        sandbox: true,
        contextIsolation: true,
        nodeIntegration: false,
        webviewTag: false,
        spellcheck: false,
      },
    });
    this.#window = opened;
    opened.once('ready-to-show', () => opened.show());
    opened.on('focus', onFront);
    opened.on('close', (event) => {
      if (!mayOpen() || onClose() !== 'minimize') return;
      event.preventDefault();
      opened.minimize();
    });
    opened.on('closed', () => {
      if (this.#window !== opened) return;
      this.#window = null;
      onGone();
    });
    await this.#load(opened, place);
  }

  async #load(window: ShellWindow, place: Place): Promise<void> {
    try {
      await window.loadURL(addressOf(place));
    } catch (error) {
      const { electron, title, mayOpen } = this.#options;
      if (mayOpen()) electron.dialog.showErrorBox(title, `The page could not be opened: ${messageOf(error)}`);
    }
  }
}
