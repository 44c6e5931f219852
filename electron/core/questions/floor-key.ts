import type { Settings } from '../../../shared/settings.ts';
import type { DeviceSample } from '../devices/sample.ts';
import { settingIndex } from '../loop/world.ts';

type Device = Pick<DeviceSample, 'id' | 'kind' | 'name'>;

/**
 * The key of the config whose amount is a device's floor, and whom else a change of it reaches: a floor
 * of the device's own stands before the one for all. `isMapping`: whether `{ keep: … }` is written there. Pure.
 */
export function floorKeyOf(
  settings: Pick<Settings, 'devices'>,
  device: Device,
  devices: readonly Device[],
  isMapping: (key: string) => boolean,
): { readonly floorKey: string; readonly alsoFor: readonly string[] } {
  const ownIndex = (one: Device): number | null => {
    const index = settingIndex(settings, one, devices);
    return index === null || settings.devices?.[index]?.floor === undefined ? null : index;
  };
  const own = ownIndex(device);
  const key = own === null ? 'floor' : `devices.${own}.floor`;
  return {
    floorKey: isMapping(key) ? `${key}.keep` : key,
    alsoFor:
      own !== null
        ? []
        : devices.filter((one) => one.id !== device.id && ownIndex(one) === null).map(({ name }) => name),
  };
}
