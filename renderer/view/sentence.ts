/** What a person should know of a device first, in plain words. Pure. */
import type { DeviceState, LandlordState, ModelState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { bytesText, roomText } from './figures.ts';
import { roomOf } from './room.ts';
import { shown } from './shown.ts';

export interface Sentence {
  /** Colour and mark go by it; the words say the same. */
  readonly tone: 'calm' | 'warning' | 'critical' | 'stale';
  readonly text: string;
  /** A second, quieter line; null for none. */
  readonly detail: string | null;
}

/** Less than this is no room worth a sentence. */
const LEAST_ROOM_BYTES = 100e6;
const words = strings.device;

export function sentenceOf(device: DeviceState, state: Pick<LandlordState, 'models' | 'policy'>): Sentence {
  const { freeBytes, floorBytes } = device;
  if (device.health === 'stale') {
    const told = device.notes.length > 0 ? device.notes.join(' ') : words.staleDetail;
    return { tone: 'stale', text: words.stale(shown(device.name)), detail: told };
  }
  if (freeBytes === null) {
    return {
      tone: 'stale',
      text: words.unreadable(shown(device.name)),
      detail: device.notes.join(' ') || null,
    };
  }
  if (device.health === 'critical') {
    const short =
      floorBytes === null
        ? bytesText(freeBytes)
        : words.critical(bytesText(freeBytes), bytesText(floorBytes));
    const text = device.evictionUnderWay === true ? `${words.driverEvicts} ${short}` : short;
    return { tone: 'critical', text, detail: helpAgainst(device, state, words.guardsActNow) };
  }
  if (device.health === 'threatened' && floorBytes !== null) {
    const text =
      freeBytes < floorBytes
        ? words.threatened(bytesText(freeBytes), bytesText(floorBytes - freeBytes))
        : words.falling(bytesText(freeBytes), bytesText(floorBytes));
    return { tone: 'warning', text, detail: helpAgainst(device, state, words.guardsWillAct) };
  }
  return { tone: 'calm', text: calmText(device), detail: null };
}

function calmText(device: DeviceState): string {
  const room = roomOf(device);
  const { floorBytes, capBytes } = device;
  const noGpu = device.kind === 'system';
  const keeps =
    floorBytes === null
      ? ''
      : device.drivesDisplay === false || noGpu
        ? ` ${words.staysFree(bytesText(floorBytes))}`
        : ` ${words.desktopKeeps(bytesText(floorBytes))}`;
  if (room === null) return `${words.roomUnknown}${keeps}`;
  if (room.bytes < LEAST_ROOM_BYTES) {
    if (room.bound === 'cap' && capBytes !== null) return words.noRoomCap(bytesText(capBytes));
    const later = device.outstandingBytes > 0 ? (device.freeBytes ?? 0) - device.outstandingBytes : null;
    if (later !== null && floorBytes !== null && later < floorBytes) {
      return words.noRoomAfterLoad(bytesText(Math.max(0, later)));
    }
    return `${noGpu ? words.noRoomNoGpu : words.noRoom}${keeps}`;
  }
  const bytes = roomText(room.bytes);
  const text = noGpu ? words.roomNoGpu(bytes) : device.unified ? words.roomUnified(bytes) : words.room(bytes);
  return `${text}${keeps}`;
}

/** Whether the guards can help, and what to do where they can't. */
function helpAgainst(
  device: DeviceState,
  state: Pick<LandlordState, 'models' | 'policy'>,
  willHelp: string,
): string {
  if (state.policy.guards === 'paused') return words.guardsPaused;
  const movable = state.models.filter((model) => mayLeave(model, device.id));
  if (movable.length === 0) return words.guardsNothingToUnload;
  const guarded = state.policy.guards === 'on' && movable.some((model) => model.guarded === 'on');
  return guarded ? willHelp : words.guardsObserve;
}

function mayLeave(model: ModelState, deviceId: string): boolean {
  return model.deviceId === deviceId && model.status === 'loaded' && model.busy === false && !model.pinned;
}
