import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { DeviceSample } from '../devices/sample.ts';

/** The device a person or a program means, by id or name; null: the largest. Errors are `unknown_device`. */
export function chooseDevice(devices: readonly DeviceSample[], wanted: string | null): Result<DeviceSample> {
  const device =
    wanted === null
      ? [...devices].sort((one, other) => (other.totalBytes ?? 0) - (one.totalBytes ?? 0))[0]
      : devices.find((one) => one.id === wanted || one.name === wanted);
  if (device !== undefined) return ok(device);
  return fail(
    'unknown_device',
    devices.length === 0
      ? 'No device has been read yet.'
      : `There is no device ${wanted}: say ${devices.map((one) => one.id).join(' or ')}.`,
  );
}
