/** A desk over stand-ins: a fake runtime, a fake Electron, a session bus that shows every icon. */
import type { AppSettingsFile } from '../../electron/shell/app-settings-file.ts';
import type { Autostart } from '../../electron/shell/autostart.ts';
import { Desk, type DeskOptions, type DeskWindow } from '../../electron/shell/desk.ts';
import type { InhibitMode, Inhibitor } from '../../electron/shell/inhibitor.ts';
import type { SessionBus } from '../../electron/shell/session-bus.ts';
import { type AppSettings, DEFAULT_APP_SETTINGS } from '../../shared/app-settings.ts';
import { ok } from '../../shared/errors.ts';
import type { Place } from '../../shared/tray-entry.ts';
import { createFakeDesk, type FakeDeskElectron } from '../fakes/desk.ts';
import { createFakeSource, type FakeSource } from './fake-source.ts';

export const DESK_PID = 4711;

export interface FakeBus extends SessionBus {
  /** What the desktop answers; null: it can't be asked. */
  hasWatcher: boolean | null;
  hasHost: boolean | null;
  /** Entries of the watcher and the processes behind them. */
  items: Record<string, number | null>;
  itemIsWhole: boolean | null;
  hasNotifications: boolean | null;
  /** The watcher says something. */
  say(): void;
  watching: number;
}

export function createFakeBus(): FakeBus {
  const listeners = new Set<() => void>();
  const bus: FakeBus = {
    hasWatcher: true,
    hasHost: true,
    items: { ':1.5/StatusNotifierItem': 99, ':1.9/StatusNotifierItem': DESK_PID },
    itemIsWhole: true,
    hasNotifications: true,
    watching: 0,
    hasOwner: async () => bus.hasWatcher,
    isAvailable: async () => bus.hasNotifications,
    getBoolean: async () => bus.hasHost,
    getStrings: async () => (bus.hasHost === null ? null : Object.keys(bus.items)),
    hasProperty: async () => bus.itemIsWhole,
    pidOf: async (name) =>
      Object.entries(bus.items).find(([entry]) => entry.split('/', 1)[0] === name)?.[1] ?? null,
    watch(_name, onChange) {
      listeners.add(onChange);
      bus.watching += 1;
      return () => {
        listeners.delete(onChange);
        bus.watching -= 1;
      };
    },
    say: () => {
      for (const listener of listeners) listener();
    },
  };
  return bus;
}

export interface FakeInhibitor extends Inhibitor {
  state: Inhibitor['state'];
  why: string | null;
}

export interface FakeDeskSet {
  readonly desk: Desk;
  readonly electron: FakeDeskElectron;
  readonly source: FakeSource;
  readonly bus: FakeBus;
  readonly settings: AppSettingsFile;
  readonly inhibitors: Record<InhibitMode, FakeInhibitor>;
  readonly opened: Place[];
  readonly quits: () => number;
  /** What the window is said to be. */
  readonly look: { open: boolean; inFront: boolean };
  startAtLogin: boolean;
}

export interface FakeDeskChange {
  readonly source?: FakeSource;
  readonly settings?: Partial<AppSettings>;
  readonly electron?: FakeDeskElectron;
  readonly bus?: FakeBus | null;
  readonly window?: DeskWindow;
  readonly quit?: () => void;
  /** What logind does with a lock; default: it gives it. */
  readonly lock?: Inhibitor['state'];
  readonly baseUrl?: DeskOptions['baseUrl'];
}

/** Time is the test's: `Date` and timers are to be vitest's. */
export function createFakeDeskSet(change: FakeDeskChange = {}): FakeDeskSet {
  const electron = change.electron ?? createFakeDesk();
  const source = change.source ?? createFakeSource();
  const bus = change.bus ?? createFakeBus();
  const settings = memorySettings({ ...DEFAULT_APP_SETTINGS, ...change.settings });
  const opened: Place[] = [];
  const look = { open: false, inFront: false };
  let quits = 0;
  const inhibitors = {
    block: fakeInhibitor(change.lock ?? 'held'),
    delay: fakeInhibitor(change.lock ?? 'held'),
  };
  const autostart: Autostart = {
    isOn: async () => set.startAtLogin,
    set: async (on) => {
      set.startAtLogin = on;
      return ok(null);
    },
  };
  const window: DeskWindow = {
    open: (place) => {
      opened.push(place);
      look.open = true;
    },
    isOpen: () => look.open,
    isInFront: () => look.inFront,
  };
  const desk = new Desk({
    electron,
    source,
    baseUrl: change.baseUrl ?? (() => 'http://127.0.0.1:7781/v1'),
    settings,
    autostart,
    bus: change.bus === null ? null : bus,
    pid: DESK_PID,
    picture: (icon) => `/icons/${icon}.png`,
    appIcon: '/icons/app.png',
    window: change.window ?? window,
    makeInhibitor: (mode, onChange) => {
      inhibitors[mode].told = onChange;
      return inhibitors[mode];
    },
    quit: () => {
      quits += 1;
      change.quit?.();
    },
    clock: { monotonicMs: () => Date.now(), epochMs: () => Date.now() },
  });
  const set: FakeDeskSet = {
    desk,
    electron,
    source,
    bus,
    settings,
    inhibitors,
    opened,
    quits: () => quits,
    look,
    startAtLogin: false,
  };
  return set;
}

function memorySettings(initial: AppSettings): AppSettingsFile {
  let settings = initial;
  return {
    get: () => settings,
    change: async (change) => {
      settings = { ...settings, ...change };
      return ok(null);
    },
  };
}

function fakeInhibitor(answer: Inhibitor['state']): FakeInhibitor & { told: () => void } {
  const inhibitor = {
    state: 'free' as Inhibitor['state'],
    why: null as string | null,
    told: () => {},
    hold(why: string) {
      if (inhibitor.state === 'held') return;
      inhibitor.state = answer;
      inhibitor.why = why;
      inhibitor.told();
    },
    release() {
      inhibitor.state = 'free';
      inhibitor.why = null;
      inhibitor.told();
    },
  };
  return inhibitor;
}
