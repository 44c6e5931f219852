import { randomBytes } from 'node:crypto';
import { fail, type LandlordError, ok, type Result } from '../../../shared/errors.ts';
import type { DeviceSample } from '../devices/sample.ts';
import { startTimeOf } from '../gate/process-start.ts';
import type { Denial } from '../ledger/booking.ts';
import type { ReservationEnd, ReservationRequest, Reserved } from '../runtime-api.ts';
import { chooseDevice } from './choose-device.ts';
import { lookedOnce } from './commands.ts';
import type { CommandContext } from './load-command.ts';
import type { Reservations } from './reservations.ts';
import { makeRoomFor, whoStays } from './room.ts';

/** A few readings: what a load before this one took is then told once, not twice. */
const SETTLE_LIMIT_MS = 3_000;
/** Room that another took while it was being made is looked for once more, not for ever. */
const MOST_TRIES = 3;

/**
 * Books memory for a job that is no model (rule 1), making idle models leave where that makes room. It
 * is booked until `release` or until somebody ends it.
 *
 * Errors: `vram_denied` with the numbers, `unknown_device`, `bad_input`, `cancelled` by the signal;
 * none of them leaves a trace in the book.
 */
export async function reserve(
  context: CommandContext,
  reservations: Reservations,
  request: ReservationRequest,
  signal: AbortSignal,
): Promise<Result<Reserved>> {
  await lookedOnce(context);
  context.loop.step();
  const device = chooseDevice(context.loop.sight.devices(), request.device);
  if (!device.ok) return device;
  const id = `job-${randomBytes(6).toString('hex')}`;
  const name = request.name ?? 'a job';
  const booked = await book(context, { id, name, bytes: request.bytes, device: device.value }, signal);
  if (!booked.ok) return booked;
  const over = new Set<(how: ReservationEnd) => void>();
  const reservation = reservations.add(
    {
      id,
      name,
      deviceId: device.value.id,
      deviceName: device.value.name,
      bytes: request.bytes,
      holder: request.pid === null ? null : { pid: request.pid, startTimeTicks: startTimeOf(request.pid) },
    },
    (how) => {
      for (const listener of over) listener(how);
    },
  );
  return ok({
    reservation,
    onOver: (listener) => void over.add(listener),
    release: (how = 'closed') => void reservations.end(id, how),
  });
}

interface Wish {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
  readonly device: DeviceSample;
}

async function book(context: CommandContext, wish: Wish, signal: AbortSignal): Promise<Result<void>> {
  const { loop, ledger, clock } = context;
  const { id, name, device } = wish;
  const room = { deviceId: device.id, name, modelId: null };
  for (let tries = 1; ; tries += 1) {
    if (signal.aborted) return fail('cancelled', `${name} no longer wants the memory it asked for.`);
    const booked = ledger.reserve({
      id,
      kind: 'reserved',
      name,
      deviceId: device.id,
      predictedBytes: wish.bytes,
      nowMs: clock.monotonicMs(),
    });
    if (booked.ok) return ok(undefined);
    const denial = booked.error;
    if (denial.code === 'BAD_INPUT') return fail('bad_input', denial.message);
    if (ledger.mayYetFit(device.id, denial)) {
      await loop.until(() => !ledger.mayYetFit(device.id, denial), SETTLE_LIMIT_MS, signal);
      if (!ledger.mayYetFit(device.id, denial) && tries < MOST_TRIES) continue;
    }
    const made = tries < MOST_TRIES && (await makeRoomFor(loop, { ...room, denial }));
    if (!made && !signal.aborted)
      return deny(context, device, denial, whoStays(loop, { ...room, denial }, ledger.bookedOn(device.id)));
  }
}

/** Rule 4: the denial with its numbers, and what would have to go. */
function deny(
  { journal }: CommandContext,
  device: DeviceSample,
  denial: Denial,
  advice: string,
): Result<never> {
  const { capBytes, bookedBytes, requestedBytes, freeBytes, floorBytes, outstandingBytes, shortBytes } =
    denial;
  const error: LandlordError = {
    code: 'vram_denied',
    message: denial.message + advice,
    numbers: { capBytes, bookedBytes, requestedBytes, freeBytes, floorBytes, outstandingBytes, shortBytes },
  };
  journal.tell({
    kind: 'denied',
    deviceId: device.id,
    reason: error.message,
    numbers: error.numbers ?? {},
  });
  return { ok: false, error };
}
