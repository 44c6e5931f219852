import { fail, ok, type Result } from '../../../shared/errors.ts';
import { resolveFloor } from '../../../shared/settings.ts';
import type { LandlordState } from '../../../shared/state.ts';
import { type DeviceKind, kindOn } from '../../core/ledger/footprint/device-kind.ts';
import { defaults } from '../../core/settings/defaults.ts';
import { parseBytes } from '../../core/settings/units.ts';
import type { Invocation } from '../arguments.ts';
import { largest, readDevices } from '../room-now.ts';
import { fetchState, findRuntime, runtimeChoice } from '../runtime-client.ts';

/** What one model that is alone may take of the largest device. */
export interface Budget {
  readonly bytes: number;
  readonly deviceKind: DeviceKind;
  /** Where the figure comes from. */
  readonly how: string;
}

/** The default cap, where no runtime says what is set. */
const CAP_SHARE = 0.9;

/**
 * What is given; else what the runtime's floor and cap leave once every model has left; else the same by
 * the built-in ones over a reading of our own. Errors: `bad_input`, `unknown_device`.
 */
export async function budgetFor(invocation: Invocation): Promise<Result<Budget>> {
  const asked = invocation.text('room');
  const given = asked === null ? null : parseBytes(asked);
  if (given !== null && !given.ok)
    return fail('bad_input', `--room takes an amount such as 20GB: ${given.hint}.`);
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return choice;
  const runtime = await findRuntime(choice.value);
  const state = runtime.ok ? await fetchState(runtime.value) : runtime;
  const known = state.ok ? ofRuntime(state.value) : null;
  const budget = known ?? (await ofReading());
  if (given !== null) {
    return ok({ bytes: given.value, deviceKind: budget?.deviceKind ?? 'cuda', how: 'as you said' });
  }
  return budget === null
    ? fail(
        'unknown_device',
        'How much memory there is can not be read here; say it with --room, such as --room 20GB.',
      )
    : ok(budget);
}

/** null: it does not know either. */
export function ofRuntime(state: LandlordState): Budget | null {
  const device = largest(state.devices);
  if (device === null || device.freeBytes === null) return null;
  const modelBytes = state.tenants
    .filter((tenant) => tenant.deviceId === device.id && (tenant.kind === 'model' || tenant.kind === 'agent'))
    .reduce((sum, tenant) => sum + (tenant.measuredBytes ?? 0), 0);
  const overFloor = device.freeBytes + modelBytes - (device.floorBytes ?? 0);
  const bytes = Math.max(0, Math.min(overFloor, device.capBytes ?? overFloor));
  return {
    bytes,
    deviceKind: kindOn(device.kind),
    how: `what floor and cap leave of ${device.name} without its models`,
  };
}

async function ofReading(): Promise<Budget | null> {
  const device = largest(await readDevices());
  if (device === null || device.freeBytes === null) return null;
  const { floorBytes } = resolveFloor(defaults().floor, device.totalBytes, null);
  const capBytes = (device.totalBytes ?? device.freeBytes) * CAP_SHARE;
  const bytes = Math.max(0, Math.floor(Math.min(capBytes, device.freeBytes - (floorBytes ?? 0))));
  return {
    bytes,
    deviceKind: kindOn(device.kind),
    how: `free now on ${device.name}, less the built-in floor; no runtime is running`,
  };
}
