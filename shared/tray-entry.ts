/**
 * What a tray's menu is made of, without Electron: entries that can be compared, printed and turned
 * into any menu. An entry does what its action says; nothing else carries behaviour.
 */
import type { AppSettings } from './app-settings.ts';

/** A question before something that can't be taken back. */
export interface Ask {
  readonly question: string;
  readonly detail: string;
  /** The button that does it; the other one is "Cancel". */
  readonly confirm: string;
}

/** What the runtime is asked to do; the shape of the runtime's own commands. */
export type TrayCommand =
  | { readonly type: 'load' | 'unload'; readonly model: string; readonly force: boolean }
  | { readonly type: 'pin' | 'unpin'; readonly model: string }
  | { readonly type: 'wake' | 'drain' | 'restore' }
  | { readonly type: 'accept'; readonly offer: string }
  | { readonly type: 'makeRoom'; readonly freeBytes: number | null; readonly deviceId: string | null }
  | {
      readonly type: 'guards';
      readonly mode: 'on' | 'observe' | 'pause';
      readonly forMs: number | null;
      readonly backend: null;
    };

/** Where the window opens. */
export type Place =
  | { readonly kind: 'home' | 'log' | 'settings' }
  | { readonly kind: 'event'; readonly id: number };

export type TrayAction =
  | { readonly type: 'open'; readonly place: Place }
  | { readonly type: 'copy'; readonly text: string }
  | { readonly type: 'command'; readonly command: TrayCommand; readonly ask: Ask | null }
  /** Reckoned when it is clicked: the menu may be hours old by then. */
  | { readonly type: 'sleep'; readonly until: 'woken' | 'hour' | 'tomorrow' }
  | { readonly type: 'set'; readonly change: Partial<AppSettings> }
  | { readonly type: 'startAtLogin'; readonly on: boolean }
  | { readonly type: 'browse' | 'host' | 'quit' };

export type MenuEntry =
  | { readonly kind: 'line'; readonly id: string }
  /** `action` null: only to be read. */
  | { readonly kind: 'item'; readonly id: string; readonly label: string; readonly action: TrayAction | null }
  | {
      readonly kind: 'check' | 'radio';
      readonly id: string;
      readonly label: string;
      readonly checked: boolean;
      readonly action: TrayAction;
    }
  | {
      readonly kind: 'menu';
      readonly id: string;
      readonly label: string;
      readonly entries: readonly MenuEntry[];
    };

export function item(id: string, label: string, action: TrayAction | null = null): MenuEntry {
  return { kind: 'item', id, label, action };
}

export function line(id: string): MenuEntry {
  return { kind: 'line', id };
}

export function submenu(id: string, label: string, entries: readonly MenuEntry[]): MenuEntry {
  return { kind: 'menu', id, label, entries };
}

/** What can be done, without the words and figures: a change of it is a change of the menu's shape. */
export function shapeOf(entries: readonly MenuEntry[]): string {
  return entries
    .map(shapeOfEntry)
    .filter((shape) => shape !== '')
    .join(' ');
}

function shapeOfEntry(entry: MenuEntry): string {
  switch (entry.kind) {
    case 'line':
      return '-';
    case 'menu':
      return `${entry.id}{${shapeOf(entry.entries)}}`;
    // A line that is only read is words, whether it is there or not.
    case 'item':
      return entry.action === null ? '' : entry.id;
    case 'check':
    case 'radio':
      return `${entry.id}${entry.checked ? '+' : '-'}`;
  }
}

/** Milliseconds from now until sleep ends; null: until woken. Tomorrow begins at eight, when people do. */
export function sleepSpanMs(until: 'woken' | 'hour' | 'tomorrow', nowMs: number): number | null {
  if (until === 'woken') return null;
  if (until === 'hour') return 3_600_000;
  const morning = new Date(nowMs);
  morning.setDate(morning.getDate() + 1);
  morning.setHours(8, 0, 0, 0);
  return morning.getTime() - nowMs;
}
