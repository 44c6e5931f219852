/**
 * Which picture the tray shows. Pure.
 *
 *   stale       there is no runtime, or no device can be read: nothing that is shown can be trusted
 *   critical    a desktop is short of memory, or the driver is moving it out
 *   threatened  free memory is under the floor, or about to be
 *   asleep      big models are asleep, and no device is in need
 *   fine        none of these
 */
import type { LandlordState } from './state.ts';

export const TRAY_ICONS = ['fine', 'threatened', 'critical', 'asleep', 'stale'] as const;
export type TrayIcon = (typeof TRAY_ICONS)[number];

/** `state` null: no runtime. One device that can't be read does not hide that another is in need. */
export function trayIcon(state: Pick<LandlordState, 'devices' | 'asleep'> | null): TrayIcon {
  if (state === null || state.devices.length === 0) return 'stale';
  const healths = state.devices.map((device) => device.health);
  if (healths.includes('critical')) return 'critical';
  if (healths.includes('threatened')) return 'threatened';
  if (healths.includes('stale')) return 'stale';
  return state.asleep === null ? 'fine' : 'asleep';
}
