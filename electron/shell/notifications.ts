/**
 * Notifications on the desktop. What is told, and when, is decided in shared/notices.ts; here it is shown,
 * and a click leads to the window.
 */
import type { AppSettings } from '../../shared/app-settings.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { NO_NOTICES, type Notice, noticeStep } from '../../shared/notices.ts';
import type { Place } from '../../shared/tray-entry.ts';
import type { DeskElectron, ShellNotification } from './desk-parts.ts';

export interface NotificationOptions {
  readonly electron: Pick<DeskElectron, 'createNotification'>;
  /** Whether anything shows notifications: without it libnotify blocks the whole process (electron#14006). */
  readonly canShow: () => Promise<boolean>;
  readonly settings: () => AppSettings;
  readonly windowInFront: () => boolean;
  readonly openWindow: (place: Place) => void;
  readonly epochMs: () => number;
  readonly icon: string;
}

/** Electron forgets one that nobody holds, and its click with it (electron#16922). */
const MOST_HELD = 20;

export class Notifications {
  readonly #options: NotificationOptions;
  readonly #held: ShellNotification[] = [];
  #memory = NO_NOTICES;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: NotificationOptions) {
    this.#options = options;
  }

  onEvent(event: LandlordEvent): void {
    this.#step([event]);
  }

  /** What waits is no news to who looks at the window. */
  windowShown(): void {
    this.#step([]);
  }

  /** Says the outcome of what a person asked for; not in quiet hours' way, since they are there. False: it was not shown. */
  async say(notice: Notice): Promise<boolean> {
    const { settings, windowInFront } = this.#options;
    if (settings().notifications === 'none' || windowInFront()) return false;
    return await this.#show(notice);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const one of this.#held.splice(0)) one.close();
  }

  #step(events: readonly LandlordEvent[]): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const { settings, windowInFront, epochMs } = this.#options;
    const nowMs = epochMs();
    const step = noticeStep(this.#memory, {
      events,
      settings: settings(),
      windowInFront: windowInFront(),
      nowMs,
    });
    this.#memory = step.memory;
    for (const notice of step.show) void this.#show(notice);
    if (step.dueAtMs === null) return;
    this.#timer = setTimeout(() => this.#step([]), Math.max(0, step.dueAtMs - nowMs));
    this.#timer.unref();
  }

  async #show(notice: Notice): Promise<boolean> {
    const { electron, canShow, openWindow, icon } = this.#options;
    if (!(await canShow()) || this.#stopped) return false;
    const shown = electron.createNotification({
      title: unmarked(notice.title),
      body: unmarked(notice.body),
      urgency: notice.urgency,
      silent: notice.urgency !== 'critical',
      icon,
    });
    const { eventId } = notice;
    shown.on('click', () => openWindow(eventId === null ? { kind: 'home' } : { kind: 'event', id: eventId }));
    shown.on('close', () => this.#forget(shown));
    this.#held.push(shown);
    if (this.#held.length > MOST_HELD) this.#held.shift();
    shown.show();
    return true;
  }

  #forget(shown: ShellNotification): void {
    const at = this.#held.indexOf(shown);
    if (at >= 0) this.#held.splice(at, 1);
  }
}

/**
 * Names of others are in it: many a desktop reads a body as markup (Desktop Notifications Specification,
 * "Markup"), links and pictures among it, and marks of direction could make it read as something else.
 */
function unmarked(text: string): string {
  return text.replaceAll('<', '\u2039').replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu, ' ');
}
