import { formatBytes } from '../../../shared/format.ts';
import { justEnough, leaversOn } from './candidates.ts';
import { comingOn, type GuardView, usableDevices } from './view.ts';
import { unload } from './wording.ts';
import type { Decision } from './world.ts';

/**
 * A person asked for this much free memory: what is quiet leaves in the order of rule 9, residents
 * last, until the wish is met counting what is on its way out. Busy ones are waited for, pinned ones
 * stay.
 */
export function makeRoomRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) => {
    const wishes = view.world.wantedFree.filter((wish) => wish.deviceId === device.id);
    if (wishes.length === 0 || device.freeBytes === null) return [];
    const wantedBytes = Math.max(...wishes.map((wish) => wish.freeBytes));
    const coming = comingOn(view, device.id);
    const all = device.totalBytes !== null && wantedBytes >= device.totalBytes;
    if (coming.unknown && !all) return [];
    const short = wantedBytes - device.freeBytes - coming.bytes;
    const leavers = leaversOn(view, device, { smalls: true, quiet: true });
    return justEnough(leavers, short).map((model) => {
      const wish = all ? 'all that may leave' : `${formatBytes(wantedBytes)} free`;
      const why = `room was asked for (${wish}) and ${formatBytes(device.freeBytes)} is free`;
      return unload(model, 'make_room', why, {
        wantedBytes,
        freeBytes: device.freeBytes,
        comingBytes: coming.bytes,
      });
    });
  });
}
