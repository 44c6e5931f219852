/**
 * A stand-in for the parts of Electron that the desk uses, typed by Electron's own declarations. It keeps
 * what is shown, and lets a test choose from the menu, click a notification, suspend the machine.
 */
import { EventEmitter } from 'node:events';
import type {
  MenuItemConstructorOptions,
  MessageBoxOptions,
  NotificationConstructorOptions,
  PowerMonitor,
} from 'electron';
import type { DeskElectron, ShellNotification, ShellTray } from '../../electron/shell/desk-parts.ts';

type FakeMenu = ReturnType<DeskElectron['menu']['buildFromTemplate']>;

export interface ShownNotification {
  readonly options: NotificationConstructorOptions;
  closed: boolean;
  click(): void;
}

export interface FakeDeskElectron extends DeskElectron {
  openExternal: DeskElectron['openExternal'];
  /** One a tray: how often each thing was set, and what stands. */
  readonly trays: {
    image: string;
    tooltip: string;
    menu: readonly MenuItemConstructorOptions[];
    menus: number;
  }[];
  readonly notifications: ShownNotification[];
  readonly copied: string[];
  /** Addresses that were opened outside. */
  readonly browsed: string[];
  readonly asked: MessageBoxOptions[];
  /** The button that is pressed in each question; default: the second. */
  press: number;
  openAtLogin: boolean;
  readonly blockers: Set<number>;
  power(event: 'suspend' | 'resume' | 'shutdown', ...args: readonly unknown[]): void;
  /** Chooses an entry by the labels that lead to it; throws where it is not, or can't be chosen. */
  choose(...labels: readonly string[]): void;
  /** The menu as text, an entry a line, submenus indented. */
  menuText(): string;
}

export function createFakeDesk(): FakeDeskElectron {
  const templates = new Map<FakeMenu, readonly MenuItemConstructorOptions[]>();
  const powerEvents = new EventEmitter();
  let nextBlocker = 1;
  const on: PowerMonitor['on'] = Object.assign((event: string, listener: (...args: unknown[]) => void) => {
    powerEvents.on(event, listener);
    return Object.create(powerEvents);
  });
  const fake: FakeDeskElectron = {
    trays: [],
    notifications: [],
    copied: [],
    browsed: [],
    asked: [],
    press: 1,
    openAtLogin: false,
    blockers: new Set(),
    createTray(image) {
      const kept: FakeDeskElectron['trays'][number] = { image, tooltip: '', menu: [], menus: 0 };
      fake.trays.push(kept);
      const tray: ShellTray = {
        setImage: (next) => {
          kept.image = String(next);
        },
        setToolTip: (text) => {
          kept.tooltip = text;
        },
        setContextMenu: (menu) => {
          kept.menu = menu === null ? [] : (templates.get(menu) ?? []);
          kept.menus += 1;
        },
      };
      return tray;
    },
    createNotification(options) {
      const emitter = new EventEmitter();
      const shown: ShownNotification = { options, closed: false, click: () => void emitter.emit('click') };
      const notification: ShellNotification = Object.assign(Object.create(emitter), {
        show: () => void fake.notifications.push(shown),
        close: () => {
          shown.closed = true;
          emitter.emit('close');
        },
      });
      return notification;
    },
    menu: {
      buildFromTemplate(template) {
        const menu: FakeMenu = Object.create(null);
        templates.set(menu, template as readonly MenuItemConstructorOptions[]);
        return menu;
      },
    },
    clipboard: { writeText: async (text) => void fake.copied.push(text) },
    openExternal: async (address) => void fake.browsed.push(address),
    dialog: {
      showMessageBox: async (...args: readonly unknown[]) => {
        fake.asked.push(Object.assign({ message: '' }, args.at(-1)));
        return { response: fake.press, checkboxChecked: false };
      },
    },
    powerMonitor: { on },
    powerSaveBlocker: {
      start: () => {
        fake.blockers.add(nextBlocker);
        return nextBlocker++;
      },
      stop: (id) => fake.blockers.delete(id),
    },
    loginItems: {
      getLoginItemSettings: () => Object.assign(Object.create(null), { openAtLogin: fake.openAtLogin }),
      setLoginItemSettings: (settings) => {
        fake.openAtLogin = settings.openAtLogin ?? false;
      },
    },
    power: (event, ...args) => void powerEvents.emit(event, ...args),
    choose(...labels) {
      let entries = fake.trays[0]?.menu ?? [];
      labels.forEach((label, at) => {
        const found = entries.find((entry) => entry.label?.startsWith(label));
        if (found === undefined) {
          throw new Error(`there is no ${label} among ${entries.map((entry) => entry.label).join(', ')}`);
        }
        if (at < labels.length - 1) {
          entries = Array.isArray(found.submenu) ? found.submenu : [];
          return;
        }
        if (found.click === undefined) throw new Error(`${label} can not be chosen`);
        Reflect.apply(found.click, null, []);
      });
    },
    menuText: () => lines(fake.trays[0]?.menu ?? [], '').join('\n'),
  };
  return fake;
}

function lines(entries: readonly MenuItemConstructorOptions[], indent: string): readonly string[] {
  return entries.flatMap((entry) => {
    if (entry.type === 'separator') return [`${indent}──`];
    const mark =
      entry.type === 'checkbox'
        ? entry.checked
          ? '[x] '
          : '[ ] '
        : entry.type === 'radio'
          ? entry.checked
            ? '(•) '
            : '( ) '
          : '';
    const own = `${indent}${mark}${(entry.label ?? '').replaceAll('&&', '&')}`;
    if (Array.isArray(entry.submenu)) return [`${own} ▸`, ...lines(entry.submenu, `${indent}    `)];
    return [entry.enabled === false ? `${own}  ·` : own];
  });
}
