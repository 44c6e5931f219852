/**
 * The icon in the tray, and its menu. Takes whole views and changes what differs; the tray itself is
 * made once and never destroyed, since panels lose the place of one that comes again.
 *
 * Nothing here listens to a click: what a click on the icon does is the panel's choice on Linux
 * (Electron's `Tray` documentation), so that everything is in the menu.
 */
import type { MenuItemConstructorOptions } from 'electron';
import type { MenuEntry, TrayAction } from '../../shared/tray-entry.ts';
import type { TrayIcon } from '../../shared/tray-icon.ts';
import type { TrayView } from '../../shared/tray-menu.ts';
import { type ShownTray, trayStep } from '../../shared/tray-pace.ts';
import type { DeskElectron, ShellTray } from './desk-parts.ts';

export interface TrayOptions {
  readonly electron: Pick<DeskElectron, 'createTray' | 'menu'>;
  /** The path of a picture. */
  readonly picture: (icon: TrayIcon) => string;
  readonly act: (action: TrayAction) => void;
  readonly monotonicMs: () => number;
}

export class TrayPresence {
  readonly #options: TrayOptions;
  #tray: ShellTray | null = null;
  #shown: ShownTray | null = null;
  #wanted: TrayView | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TrayOptions) {
    this.#options = options;
  }

  show(view: TrayView): void {
    this.#wanted = view;
    this.#render();
  }

  /** No more changes; the icon goes with the app. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#wanted = null;
  }

  #render(): void {
    clearTimeout(this.#timer);
    const view = this.#wanted;
    if (view === null) return;
    const { electron, picture, monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const step = trayStep(this.#shown, view, nowMs);
    const tray = this.#tray ?? electron.createTray(picture(view.icon));
    if (this.#tray !== null && step.icon) tray.setImage(picture(view.icon));
    this.#tray = tray;
    if (step.tooltip) tray.setToolTip(view.tooltip);
    // On Linux a menu that was set is a copy: only another call shows what has changed.
    if (step.menu) tray.setContextMenu(electron.menu.buildFromTemplate(this.#template(view.menu)));
    const before = this.#shown;
    this.#shown = {
      view: {
        icon: view.icon,
        tooltip: step.tooltip ? view.tooltip : (before?.view.tooltip ?? view.tooltip),
        menu: step.menu ? view.menu : (before?.view.menu ?? view.menu),
      },
      tooltipAtMs: step.tooltip ? nowMs : (before?.tooltipAtMs ?? nowMs),
      menuAtMs: step.menu ? nowMs : (before?.menuAtMs ?? nowMs),
      menuIcon: step.menu ? view.icon : (before?.menuIcon ?? view.icon),
      tooltipIcon: step.tooltip ? view.icon : (before?.tooltipIcon ?? view.icon),
    };
    if (step.dueAtMs === null) return;
    this.#timer = setTimeout(() => this.#render(), Math.max(0, step.dueAtMs - nowMs));
    this.#timer.unref();
  }

  #template(entries: readonly MenuEntry[]): MenuItemConstructorOptions[] {
    return entries.map((entry) => this.#item(entry));
  }

  #item(entry: MenuEntry): MenuItemConstructorOptions {
    switch (entry.kind) {
      case 'line':
        return { type: 'separator' };
      case 'menu':
        return { type: 'submenu', label: plain(entry.label), submenu: this.#template(entry.entries) };
      case 'item': {
        const { action } = entry;
        return action === null
          ? { label: plain(entry.label), enabled: false }
          : { label: plain(entry.label), click: () => this.#options.act(action) };
      }
      case 'check':
      case 'radio':
        return {
          type: entry.kind === 'check' ? 'checkbox' : 'radio',
          label: plain(entry.label),
          checked: entry.checked,
          click: () => this.#chosen(entry.action),
        };
    }
  }

  /** The panel moves the mark by itself: what is shown is no longer what was set, so it is set again. */
  #chosen(action: TrayAction): void {
    if (this.#shown !== null) {
      this.#shown = { ...this.#shown, view: { ...this.#shown.view, menu: [] } };
    }
    this.#options.act(action);
    this.#render();
  }
}

/** In a menu's label an `&` underlines what follows; two are one. */
function plain(label: string): string {
  return label.replaceAll('&', '&&');
}
