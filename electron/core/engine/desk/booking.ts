import { fail, type LandlordError } from '../../../../shared/errors.ts';
import type { Denial } from '../../ledger/booking.ts';
import type { DeskRefusal, DeskResult } from './desk-api.ts';
import type { DeskWorld } from './desk-world.ts';

export interface WantedLine {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
}

export interface BookingWish {
  /** Who wants it, as people know it. */
  readonly name: string;
  readonly deviceId: string;
  /** Booked together or not at all; lines that are there already are left out. */
  readonly lines: readonly WantedLine[];
  /** What will be booked later and must fit beside them once idle contexts have left. */
  readonly laterBytes: number;
}

/** What the desk itself can give back. */
export interface Yielding {
  /** Booked by contexts of agents on this device, used or not. */
  contextBytes(deviceId: string): number;
  /** Of those the bytes of idle ones. */
  idleBytes(deviceId: string): number;
  /** Moves the least recently used idle context out; false: there is none. */
  yieldOne(deviceId: string, forWhom: string): Promise<boolean>;
}

/** Room that another took while it was being made is looked for again, not for ever. */
const MOST_ROUNDS = 64;
const MOST_MODELS_ROUNDS = 2;

/**
 * Books memory for an agent (rule 1), all lines in one step. Where it does not fit, idle contexts of
 * other agents move out first, which costs milliseconds, then idle models leave. Not `asked` for: for a
 * turn that comes later, so no model leaves for it, and a refusal is nobody's.
 */
export async function bookLines(
  world: DeskWorld,
  yielding: Yielding,
  wish: BookingWish,
  asked = true,
): Promise<DeskResult<void>> {
  const { ledger } = world;
  let modelRounds = 0;
  for (let round = 1; ; round += 1) {
    const tried = tryLines(world, yielding, wish);
    if (tried === null) return { ok: true, value: undefined };
    const denied = tried.denial;
    if (denied.code === 'BAD_INPUT' || denied.code === 'UNKNOWN_DEVICE' || round >= MOST_ROUNDS)
      return refuse(world, wish, denied, asked);
    if (asked && ledger.mayYetFit(wish.deviceId, denied)) {
      await world.reading(wish.deviceId);
      if (!ledger.mayYetFit(wish.deviceId, denied)) continue;
    }
    // Where all contexts are counted as gone already, moving them out gives nothing more.
    const idle = tried.contextsCounted ? 0 : yielding.idleBytes(wish.deviceId);
    const short = denied.shortBytes ?? Number.POSITIVE_INFINITY;
    if (short <= idle) {
      // Checked again before each further one: the least that does is enough.
      if (!(await yielding.yieldOne(wish.deviceId, wish.name))) return refuse(world, wish, denied, asked);
      if (denied.code === 'FLOOR') await world.reading(wish.deviceId);
      continue;
    }
    if (!asked || denied.shortBytes === null || modelRounds >= MOST_MODELS_ROUNDS)
      return refuse(world, wish, denied, asked);
    modelRounds += 1;
    const rest = { ...denied, shortBytes: denied.shortBytes - idle };
    if (!(await world.makeRoom({ deviceId: wish.deviceId, name: wish.name, denial: rest })))
      return refuse(world, wish, denied, asked);
  }
}

interface Denied {
  readonly denial: Denial;
  /** It would not fit even if every context of an agent left. */
  readonly contextsCounted: boolean;
}

/** One step of the ledger with nothing in between (rule 2); null: booked. */
function tryLines({ ledger, clock }: DeskWorld, yielding: Yielding, wish: BookingWish): Denied | null {
  const { deviceId, laterBytes } = wish;
  const [first, ...rest] = wish.lines;
  if (first === undefined) return null;
  const nowMs = clock.monotonicMs();
  const bytes = wish.lines.reduce((sum, line) => sum + line.bytes, 0);
  const ask = (predictedBytes: number, creditBytes: number) =>
    ledger.reserve({
      id: first.id,
      kind: 'agent',
      name: first.name,
      deviceId,
      predictedBytes,
      creditBytes,
      nowMs,
    });
  if (laterBytes > 0) {
    const both = ask(bytes + laterBytes, yielding.contextBytes(deviceId));
    if (!both.ok) return { denial: both.error, contextsCounted: true };
    ledger.release(first.id);
  }
  const booked = ask(bytes, 0);
  if (!booked.ok) return { denial: booked.error, contextsCounted: false };
  ledger.correct(first.id, first.bytes);
  for (const line of rest)
    ledger.reserve({
      id: line.id,
      kind: 'agent',
      name: line.name,
      deviceId,
      predictedBytes: line.bytes,
      forced: true,
      nowMs,
    });
  return null;
}

/** Whether a context would fit beside what stays when idle ones have left; null: it would. */
export function checkLater(world: DeskWorld, yielding: Yielding, wish: BookingWish): DeskResult<void> {
  const denied = tryLines(world, yielding, wish);
  if (denied !== null) return refuse(world, wish, denied.denial, true);
  for (const line of wish.lines) world.ledger.release(line.id);
  return { ok: true, value: undefined };
}

/** What may be booked on a device once every context has left. */
export function roomBytes({ ledger, clock }: DeskWorld, yielding: Yielding, deviceId: string): number {
  const book = ledger.book(deviceId, clock.monotonicMs());
  if (book === null || book.capBytes === null || book.freeBytes === null || book.floorBytes === null)
    return 0;
  const byCap = book.capBytes - book.bookedBytes;
  const byFloor = book.freeBytes - book.outstandingBytes - book.floorBytes;
  return Math.min(byCap, byFloor) + yielding.contextBytes(deviceId);
}

function refuse(world: DeskWorld, wish: BookingWish, denial: Denial, told: boolean): DeskResult<never> {
  const { deviceId, name } = wish;
  const { capBytes, bookedBytes, requestedBytes, freeBytes, floorBytes, outstandingBytes, shortBytes } =
    denial;
  const numbers = {
    capBytes,
    bookedBytes,
    requestedBytes,
    freeBytes,
    floorBytes,
    outstandingBytes,
    shortBytes,
  };
  const message = denial.message + world.advice({ deviceId, name, denial });
  if (told) world.tell({ kind: 'denied', deviceId, session: name, reason: message, numbers });
  const error: LandlordError = { code: 'vram_denied', message, numbers };
  return { ok: false, error: { error, denial } };
}

export function refusal(error: LandlordError): { readonly ok: false; readonly error: DeskRefusal } {
  return { ok: false, error: { error, denial: null } };
}

export function refused(...reason: Parameters<typeof fail>): ReturnType<typeof refusal> {
  return refusal(fail(...reason).error);
}
