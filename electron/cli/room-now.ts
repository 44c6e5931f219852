import { fail, ok, type Result } from '../../shared/errors.ts';
import type { DeviceSample } from '../core/devices/sample.ts';
import { ChildSampler } from '../core/devices/sampler.ts';
import type { Invocation } from './arguments.ts';
import { fetchState, findRuntime, runtimeChoice } from './runtime-client.ts';

/** What a model may take now. */
export interface Room {
  readonly bytes: number;
  readonly device: string;
  /** Where the figure comes from. */
  readonly how: string;
}

const READING_LIMIT_MS = 5_000;

/**
 * By the runtime where one runs: what its floor and its cap leave of the device with most memory; else
 * what a reading finds free. Errors: `unknown_device` where neither can say; `bad_input` for options.
 */
export async function roomNow(invocation: Invocation): Promise<Result<Room>> {
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return choice;
  const runtime = await findRuntime(choice.value);
  const state = runtime.ok ? await fetchState(runtime.value) : runtime;
  if (state.ok) {
    const device = largest(state.value.devices);
    if (device?.freeBytes != null) {
      const { freeBytes, outstandingBytes, floorBytes, capBytes, bookedBytes } = device;
      const overFloor = freeBytes - (outstandingBytes ?? 0) - (floorBytes ?? 0);
      const underCap = capBytes === null ? overFloor : capBytes - (bookedBytes ?? 0);
      const bytes = Math.max(0, Math.min(overFloor, underCap));
      return ok({ bytes, device: device.name, how: 'what floor and cap leave now' });
    }
  }
  const device = largest(await readDevices());
  if (device?.freeBytes == null)
    return fail('unknown_device', 'How much memory is free can not be read here: run `landlord doctor`.');
  return ok({ bytes: device.freeBytes, device: device.name, how: 'free now, no runtime is running' });
}

export function largest<T extends { readonly totalBytes: number | null; readonly kind: string }>(
  devices: readonly T[],
): T | null {
  const cards = devices.filter((device) => device.kind !== 'system');
  return (
    [...(cards.length > 0 ? cards : devices)].sort((a, b) => (b.totalBytes ?? 0) - (a.totalBytes ?? 0))[0] ??
    null
  );
}

/** One reading by a sampler of our own, which ends with it. Empty: none came in time. */
export async function readDevices(): Promise<readonly DeviceSample[]> {
  const sampler = new ChildSampler({ devices: null });
  const first = new Promise<readonly DeviceSample[]>((resolve) => {
    setTimeout(() => resolve([]), READING_LIMIT_MS).unref();
    sampler.start((set) => {
      if (set.devices.some((device) => device.freeBytes !== null)) resolve(set.devices);
    });
  });
  const devices = await first;
  await sampler.stop();
  return devices;
}
