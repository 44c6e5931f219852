/**
 * Whether anybody shows our icon. `new Tray` succeeds where nothing does, so the desktop is asked: is a
 * host registered with the StatusNotifierWatcher, and does the watcher list an item of ours?
 *
 *   unknown ──a host, and our item is listed──► shown ◄──────────────┐
 *      │                                          │ host or item gone │ back
 *      └──no watcher, no host, or not our item──► hidden ────────────┘
 *
 * (freedesktop's Status Notifier Item specification, §4; the name on the bus is KDE's everywhere.)
 */
import type { SessionBus } from './session-bus.ts';

export type TrayShown =
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'shown' }
  | { readonly kind: 'hidden'; readonly why: string };

export interface TrayHostOptions {
  readonly bus: SessionBus;
  readonly pid: number;
  readonly onChange: (shown: TrayShown) => void;
  /** From making the tray until it must be listed. */
  readonly settleMs?: number;
}

const WATCHER = {
  name: 'org.kde.StatusNotifierWatcher',
  path: '/StatusNotifierWatcher',
  interface: 'org.kde.StatusNotifierWatcher',
} as const;
const ITEM_INTERFACE = 'org.kde.StatusNotifierItem';
/** An icon registers itself some time after it was made, and a panel that restarts needs longer. */
const SETTLE_MS = 1_500;
const TRIES = 4;

/** Looks once, then whenever the watcher says or does something. */
export class TrayHost {
  readonly #options: TrayHostOptions;
  #shown: TrayShown = { kind: 'unknown', why: 'The desktop has not been asked yet.' };
  #timer: NodeJS.Timeout | undefined;
  #undo = (): void => {};
  #looking: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(options: TrayHostOptions) {
    this.#options = options;
  }

  get shown(): TrayShown {
    return this.#shown;
  }

  /** Called once the tray has been made. Resolves with the first finding. */
  async start(): Promise<TrayShown> {
    this.#undo = this.#options.bus.watch(WATCHER.name, () => this.#lookSoon());
    await this.#look();
    return this.#shown;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#undo();
  }

  /** A panel that restarts says many things at once. */
  #lookSoon(): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(), this.#options.settleMs ?? SETTLE_MS);
    this.#timer.unref();
  }

  #look(): Promise<void> {
    if (this.#looking !== null) {
      this.#again = true;
      return this.#looking;
    }
    this.#looking = this.#ask().finally(() => {
      this.#looking = null;
      if (!this.#again) return;
      this.#again = false;
      this.#lookSoon();
    });
    return this.#looking;
  }

  async #ask(): Promise<void> {
    const { bus, pid, settleMs, onChange } = this.#options;
    let found = await findTray(bus, pid);
    for (
      let tried = 1;
      found.kind === 'hidden' && found.retry && tried < TRIES && !this.#stopped;
      tried += 1
    ) {
      await new Promise((resolve) => setTimeout(resolve, settleMs ?? SETTLE_MS));
      found = await findTray(bus, pid);
    }
    if (this.#stopped) return;
    const changed = this.#shown.kind !== found.kind;
    this.#shown = found;
    if (changed) onChange(this.#shown);
  }
}

type Found = TrayShown & { readonly retry: boolean };

/** `retry`: our item may only be late. */
export async function findTray(bus: SessionBus, pid: number): Promise<Found> {
  const watcher = await bus.hasOwner(WATCHER.name);
  if (watcher === null) return unknown("The session bus can't be asked: neither busctl nor gdbus answers.");
  if (!watcher) return hidden('This desktop has no tray (on GNOME: the AppIndicator extension).', false);
  const host = await bus.getBoolean(WATCHER, 'IsStatusNotifierHostRegistered');
  if (host === null) return unknown('The tray of this desktop does not say whether it shows icons.');
  if (!host) return hidden('No panel of this desktop shows tray icons.', false);
  const items = await bus.getStrings(WATCHER, 'RegisteredStatusNotifierItems');
  if (items === null) return unknown('The tray of this desktop does not say which icons it has.');
  let asked = true;
  for (const entry of items) {
    const { name, path } = itemOf(entry);
    const owner = await bus.pidOf(name);
    if (owner === null) asked = false;
    if (owner !== pid) continue;
    // Electron 43 registered items that have nothing to show (electron#54181).
    const whole = await bus.hasProperty({ name, path, interface: ITEM_INTERFACE }, 'Status');
    return whole === false
      ? hidden('The icon is registered with the desktop, and empty.', true)
      : { kind: 'shown', retry: false };
  }
  return asked || items.length === 0
    ? hidden('The desktop does not list our icon.', true)
    : unknown('Whose the icons of this desktop are can not be told.');
}

/** `:1.209/org/chromium/StatusNotifierItem/1` or a bare bus name, whose item is at the usual path. */
export function itemOf(entry: string): { readonly name: string; readonly path: string } {
  const slash = entry.indexOf('/');
  return slash < 0
    ? { name: entry, path: '/StatusNotifierItem' }
    : { name: entry.slice(0, slash), path: entry.slice(slash) };
}

function unknown(why: string): Found {
  return { kind: 'unknown', why, retry: false };
}

function hidden(why: string, retry: boolean): Found {
  return { kind: 'hidden', why, retry };
}
