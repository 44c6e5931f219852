/**
 * When the tray is touched. A change of a menu rebuilds it, under the pointer of whoever has it open
 * (GNOME and KDE both close or jump), so that words and figures wait; what can be done, and the picture,
 * do not. Pure.
 */
import { shapeOf } from './tray-entry.ts';
import type { TrayIcon } from './tray-icon.ts';
import type { TrayView } from './tray-menu.ts';

export interface ShownTray {
  readonly view: TrayView;
  /** Monotonic ms of the last change of the menu, and of the tooltip. */
  readonly menuAtMs: number;
  readonly tooltipAtMs: number;
  /** The picture that stood when each was changed: words that belong to a new one do not wait long. */
  readonly menuIcon: TrayIcon;
  readonly tooltipIcon: TrayIcon;
}

export interface TrayStep {
  readonly icon: boolean;
  readonly tooltip: boolean;
  readonly menu: boolean;
  /** Monotonic ms at which to look again; null: nothing waits. */
  readonly dueAtMs: number | null;
}

const FIGURES_EVERY_MS = 5_000;
/** Pins and sleeps come from a person, who waits for the mark; a burst of loads does not. */
const SHAPE_EVERY_MS = 500;

export function trayStep(shown: ShownTray | null, next: TrayView, nowMs: number): TrayStep {
  if (shown === null) return { icon: true, tooltip: true, menu: true, dueAtMs: null };
  const icon = shown.view.icon !== next.icon;
  const tooltip = wait(
    shown.view.tooltip !== next.tooltip,
    shown.tooltipAtMs,
    shown.tooltipIcon !== next.icon ? SHAPE_EVERY_MS : FIGURES_EVERY_MS,
    nowMs,
  );
  const shape = shapeOf(shown.view.menu) !== shapeOf(next.menu);
  const menu = wait(
    JSON.stringify(shown.view.menu) !== JSON.stringify(next.menu),
    shown.menuAtMs,
    shape || shown.menuIcon !== next.icon ? SHAPE_EVERY_MS : FIGURES_EVERY_MS,
    nowMs,
  );
  const dues = [tooltip, menu].flatMap((one) => (typeof one === 'number' ? [one] : []));
  return {
    icon,
    tooltip: tooltip === true,
    menu: menu === true,
    dueAtMs: dues.length === 0 ? null : Math.min(...dues),
  };
}

/** Whether to change it now, or when. */
function wait(differs: boolean, lastAtMs: number, everyMs: number, nowMs: number): boolean | number {
  if (!differs) return false;
  return nowMs - lastAtMs >= everyMs ? true : lastAtMs + everyMs;
}
