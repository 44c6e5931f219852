/**
 * The app on the desktop when no window is open: the tray, the notifications, the power watch, and what
 * ties them to the runtime. It decides nothing about memory; what it shows is made in shared/.
 */

import { isQuiet } from '../../shared/app-settings.ts';
import { type BringBackMemory, bringBackStep, NO_BRING_BACK } from '../../shared/bring-back.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import type { Place, TrayAction } from '../../shared/tray-entry.ts';
import type { TrayIcon } from '../../shared/tray-icon.ts';
import { trayView } from '../../shared/tray-menu.ts';
import { isEviction } from '../../shared/tray-models.ts';
import type { Clock } from '../core/clock.ts';
import type { AppSettingsFile } from './app-settings-file.ts';
import type { Autostart } from './autostart.ts';
import type { DeskElectron } from './desk-parts.ts';
import type { InhibitMode, Inhibitor } from './inhibitor.ts';
import { Notifications } from './notifications.ts';
import { Power } from './power.ts';
import type { RuntimeSource } from './runtime-source.ts';
import type { SessionBus } from './session-bus.ts';
import { TrayPresence } from './tray.ts';
import { carryOut } from './tray-actions.ts';
import { TrayHost, type TrayShown } from './tray-host.ts';

export interface DeskWindow {
  open(place: Place): void;
  isOpen(): boolean;
  /** Whether a person has it before them: then nothing need be told beside it. */
  isInFront(): boolean;
}

export interface DeskOptions {
  readonly electron: DeskElectron;
  readonly source: Pick<RuntimeSource, 'api' | 'link' | 'onLink' | 'host' | 'openUrl'>;
  /** `http://127.0.0.1:7781/v1`; null: not known. */
  readonly baseUrl: () => string | null;
  readonly settings: AppSettingsFile;
  /** null: this system has no such thing. */
  readonly autostart: Autostart | null;
  /** null: no session bus here, and the system's own tray is always shown (Windows, macOS). */
  readonly bus: SessionBus | null;
  readonly pid: number;
  readonly picture: (icon: TrayIcon) => string;
  readonly appIcon: string;
  readonly window: DeskWindow;
  readonly makeInhibitor: (mode: InhibitMode, onChange: () => void) => Inhibitor;
  readonly quit: () => void;
  readonly clock: Clock;
}

const NOTIFICATIONS = 'org.freedesktop.Notifications';
/** The runtime publishes with every step; people do not read that fast. */
const RENDER_EVERY_MS = 200;
/** The newest may be contexts of agents, which come back by themselves. */
const EVICTIONS_READ = 50;

export class Desk {
  readonly #options: DeskOptions;
  readonly #tray: TrayPresence;
  readonly #host: TrayHost | null;
  readonly #notifications: Notifications;
  readonly #power: Power;
  readonly #undo: (() => void)[] = [];
  #lastEviction: LandlordEvent | null = null;
  #startAtLogin: boolean | null = null;
  #bringBack: BringBackMemory = NO_BRING_BACK;
  #renderTimer: NodeJS.Timeout | undefined;
  #closeTold = false;
  #stopped = false;

  constructor(options: DeskOptions) {
    const { electron, source, bus, clock, settings, window } = options;
    this.#options = options;
    this.#tray = new TrayPresence({
      electron,
      picture: options.picture,
      act: (action) => void this.#act(action),
      monotonicMs: clock.monotonicMs,
    });
    this.#host =
      bus === null
        ? null
        : new TrayHost({ bus, pid: options.pid, onChange: (shown) => this.#hostChanged(shown) });
    this.#notifications = new Notifications({
      electron,
      canShow: async () => bus === null || (await bus.isAvailable(NOTIFICATIONS)) === true,
      settings: settings.get,
      windowInFront: () => window.isInFront(),
      openWindow: (place) => window.open(place),
      epochMs: clock.epochMs,
      icon: options.appIcon,
    });
    this.#power = new Power({
      electron,
      api: source.api,
      makeInhibitor: options.makeInhibitor,
      unloadBeforeSuspend: () => settings.get().unloadBeforeSuspend,
      quit: options.quit,
      onChange: () => this.#renderSoon(),
      epochMs: clock.epochMs,
    });
  }

  /** Makes the tray, and resolves with whether anybody shows it. The window opens where nobody does. */
  async start(): Promise<TrayShown> {
    const { source, autostart } = this.#options;
    this.#undo.push(
      source.api.onState(() => this.#renderSoon()),
      source.api.onEvent((event) => this.#event(event)),
      source.onLink(() => this.#renderSoon()),
    );
    this.#startAtLogin = autostart === null ? null : await autostart.isOn();
    const evictions = await source.api.events({ kinds: ['evicted', 'killed'], limit: EVICTIONS_READ });
    if (evictions.ok) this.#lastEviction ??= evictions.value.findLast(isEviction) ?? null;
    this.#render();
    const shown: TrayShown = this.#host === null ? { kind: 'shown' } : await this.#host.start();
    this.#openIfUnseen(shown);
    return shown;
  }

  /** What closing the window does now. */
  onClose(): 'hide' | 'quit' | 'minimize' {
    return this.#isShown() ? 'hide' : this.#options.settings.get().closeWithoutTray;
  }

  /** The window was closed, and the app goes on: said once. */
  hidden(): void {
    const { settings } = this.#options;
    if (settings.get().closeNoticeShown || this.#closeTold) return;
    this.#closeTold = true;
    const said = this.#notifications.say({
      title: 'VRAM Landlord goes on guarding',
      body: 'It is in the tray: its menu shows the window again, and quits.',
      urgency: 'low',
      eventId: null,
    });
    // Said to nobody, it is said again the next time.
    void said.then((shown) => {
      this.#closeTold = shown;
      if (shown) void settings.change({ closeNoticeShown: true });
    });
  }

  /** The window has come to the front. */
  windowShown(): void {
    this.#notifications.windowShown();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#renderTimer);
    for (const undo of this.#undo.splice(0)) undo();
    this.#tray.stop();
    this.#host?.stop();
    this.#notifications.stop();
    this.#power.stop();
  }

  #isShown(): boolean {
    return this.#host === null || this.#host.shown.kind === 'shown';
  }

  #hostChanged(shown: TrayShown): void {
    this.#openIfUnseen(shown);
  }

  /** A guard that nobody can see is one that nobody can stop. */
  #openIfUnseen(shown: TrayShown): void {
    const { window } = this.#options;
    if (shown.kind !== 'shown' && !window.isOpen() && !this.#stopped) window.open({ kind: 'home' });
  }

  #event(event: LandlordEvent): void {
    if (isEviction(event)) this.#lastEviction = event;
    this.#notifications.onEvent(event);
    this.#renderSoon();
  }

  #renderSoon(): void {
    if (this.#renderTimer !== undefined || this.#stopped) return;
    this.#renderTimer = setTimeout(() => {
      this.#renderTimer = undefined;
      this.#render();
    }, RENDER_EVERY_MS);
    this.#renderTimer.unref();
  }

  #render(): void {
    if (this.#stopped) return;
    const { source, settings, baseUrl, clock } = this.#options;
    const link = source.link();
    const state = source.api.state();
    this.#power.onState(link.kind === 'lost' ? null : state);
    this.#tray.show(
      trayView({
        state,
        link,
        baseUrl: baseUrl(),
        lastEviction: this.#lastEviction,
        awake: this.#power.sentence,
        settings: settings.get(),
        startAtLogin: this.#startAtLogin,
        resumedAtMs: this.#power.resumedAtMs,
        nowMs: clock.epochMs(),
      }),
    );
    if (link.kind !== 'lost') this.#lookForReturn();
  }

  /** What left for a game or a render comes back when that has ended. */
  #lookForReturn(): void {
    const { source, settings, clock } = this.#options;
    const step = bringBackStep(this.#bringBack, source.api.state(), clock.monotonicMs());
    this.#bringBack = step.memory;
    if (step.restore && settings.get().bringBack) void this.#bringItBack();
  }

  async #bringItBack(): Promise<void> {
    const { source, settings, clock } = this.#options;
    const done = await source.api.command({ type: 'restore' });
    const { notifications, quietHours } = settings.get();
    // Nobody asked for it, so that it is told like what the guards do.
    if (notifications !== 'all' || isQuiet(quietHours, clock.epochMs())) return;
    await this.#notifications.say({
      title: 'The memory is free again',
      body: done.ok ? done.value.message : done.error.message,
      urgency: 'low',
      eventId: null,
    });
  }

  async #act(action: TrayAction): Promise<void> {
    const { electron, source, settings, autostart, window, quit, clock } = this.#options;
    await carryOut(action, {
      electron,
      command: (command) => source.api.command(command),
      host: () => source.host(),
      openUrl: () => source.openUrl(),
      set: (change) => {
        const written = settings.change(change);
        this.#power.settingsChanged();
        return written;
      },
      startAtLogin: async (on) => {
        if (autostart === null) return { ok: true, value: null };
        const done = await autostart.set(on);
        this.#startAtLogin = await autostart.isOn();
        return done;
      },
      openWindow: (place) => window.open(place),
      say: (message) =>
        void this.#notifications.say({
          title: 'VRAM Landlord',
          body: message,
          urgency: 'low',
          eventId: null,
        }),
      quit,
      epochMs: clock.epochMs,
    });
    this.#render();
  }
}
