import { fail, ok, type Result } from '../../../shared/errors.ts';
import { Account } from './account.ts';
import { denial } from './admission.ts';
import type { Booking, Denial, DeviceBook, DeviceLimits, ReserveRequest, ReserveResult } from './booking.ts';
import { badBytes, checkBytes, isByteCount } from './bytes.ts';
import type { Reading } from './free.ts';
import {
  bookedOf,
  type Line,
  outstandingOf,
  type SharedWeights,
  sharedOutstandingOf,
  toBooking,
} from './lines.ts';

/** One device's reading, as the loop hands it over each tick (rule 3). */
export interface ReconcileInput {
  /** null: unknown (unreadable, stale): nothing but forced lines is booked until it is known again. */
  readonly driverFreeBytes: number | null;
  readonly hostAvailableBytes: number | null;
  readonly totalBytes: number | null;
  readonly unified: boolean;
  /** Monotonic ms. A reading older than the last one is ignored. */
  readonly sampledAtMs: number;
  /** How long the reading may be used for admissions (3 of its source's periods); absent: until the next. */
  readonly validForMs?: number;
}

/** Everything the ledger holds, for the invariant checker. */
export interface LedgerSnapshot {
  readonly devices: readonly {
    readonly book: DeviceBook;
    readonly reading: Reading | null;
    readonly settlingBytes: number;
    readonly settling: readonly string[];
    readonly resting: readonly string[];
    readonly shared: readonly SharedWeights[];
    readonly lines: readonly Line[];
  }[];
  /** id → device of every line, as the ledger finds it. */
  readonly index: Readonly<Record<string, string>>;
}

const NO_LIMITS: DeviceLimits = { totalBytes: null, capBytes: null, floorBytes: null, hardFloorBytes: null };

/**
 * Who holds how much of which device. In memory and synchronous: checking and booking are one step
 * with nothing in between (rule 2), and each step costs the same however long the book is.
 *
 * Bytes of a line are private: over and above its `shared` weights, which are booked once a device
 * and key. Every method leaves the book as it was when it returns an error.
 */
export class Ledger {
  readonly #accounts = new Map<string, Account>();
  readonly #deviceOf = new Map<string, Account>();

  /** `bad_input` for a figure that is no byte count; then the limits stay as they were. */
  setLimits(deviceId: string, limits: DeviceLimits): Result<void> {
    for (const [what, value] of Object.entries(limits)) {
      const checked = checkBytes(value, `${what} of ${deviceId}`);
      if (!checked.ok) return checked;
    }
    this.#account(deviceId).limits = limits;
    return ok(undefined);
  }

  /**
   * Books ahead of a load (rule 1), or says in numbers why not (rule 4). A forced line is booked
   * whatever is free, and asking for it again returns the line there is.
   */
  reserve(request: ReserveRequest): ReserveResult {
    const bad = badFigure(request);
    if (bad !== null) return this.#refuse(request, 'BAD_INPUT', bad);
    const held = this.#deviceOf.get(request.id)?.lines.get(request.id);
    if (held !== undefined) return this.#again(request, held);

    const account = this.#accounts.get(request.deviceId);
    if (account === undefined && request.forced !== true) {
      const message = `${request.name} is to go on ${request.deviceId}, which is no device of this machine: \`landlord status\` lists them.`;
      return this.#refuse(request, 'UNKNOWN_DEVICE', message);
    }
    const target = account ?? this.#account(request.deviceId);
    const before = request.shared === undefined ? undefined : target.shared.get(request.shared.key);
    const after = request.shared === undefined ? undefined : joined(before, request.shared);
    const sharedNeed = (after?.bytes ?? 0) - (before?.bytes ?? 0);
    if (request.forced !== true) {
      const denied = denial(target.book(request.nowMs), {
        name: request.name,
        bytes:
          request.predictedBytes === null && sharedNeed === 0
            ? null
            : (request.predictedBytes ?? 0) + sharedNeed,
        job: request.kind === 'reserved',
        soleBig: request.soleBig === true,
        creditBytes: request.creditBytes ?? 0,
      });
      if (denied !== null) return { ok: false, error: denied };
    }
    const line = newLine(request);
    if (!target.apply({ lineBefore: undefined, lineAfter: line, sharedBefore: before, sharedAfter: after }))
      return this.#refuse(request, 'BAD_INPUT', tooMuch(request.name));
    this.#deviceOf.set(line.id, target);
    return ok(toBooking(line, after));
  }

  /**
   * What measurement shows of a line now. While it loads, this shrinks what is outstanding; after, it
   * replaces the prediction. null (not measurable) changes nothing.
   */
  seen(id: string, bytes: number | null): Result<void> {
    if (bytes === null) return ok(undefined);
    return this.#change(id, bytes, 'the measurement', (line) => ({
      ...line,
      seenBytes: bytes,
      measured: line.state === 'committed',
    }));
  }

  /** What measurement shows of weights that lines share. */
  seenShared(deviceId: string, key: string, bytes: number): Result<void> {
    const account = this.#accounts.get(deviceId);
    const weights = account?.shared.get(key);
    if (account === undefined || weights === undefined)
      return fail('bad_input', `No line on ${deviceId} shares weights ${key}.`);
    const checked = checkBytes(bytes, `the measurement of ${key}`);
    if (!checked.ok) return checked;
    const after = { ...weights, seenBytes: bytes };
    const done = account.apply({
      lineBefore: undefined,
      lineAfter: undefined,
      sharedBefore: weights,
      sharedAfter: after,
    });
    return done ? ok(undefined) : fail('bad_input', tooMuch(key));
  }

  /**
   * The load is done. `measuredBytes` null: not measurable, so the prediction stays booked until
   * `seen` brings a figure. `nowMs` (monotonic) tells which readings already show the load.
   */
  commit(id: string, measuredBytes: number | null, nowMs: number | null = null): Result<void> {
    const account = this.#deviceOf.get(id);
    const line = account?.lines.get(id);
    if (account === undefined || line === undefined) return missing(id);
    const checked = checkBytes(measuredBytes, `the measured size of ${line.name}`);
    if (!checked.ok) return checked;
    const weights = line.sharedKey === null ? undefined : account.shared.get(line.sharedKey);
    const committed: Line = {
      ...line,
      state: 'committed',
      resting: false,
      seenBytes: measuredBytes ?? line.seenBytes,
      measured: measuredBytes !== null || line.measured,
    };
    // The driver's last figure may be from before the load ended: what it can't show yet stays taken. What
    // has come to rest was read after it, and the device with it.
    const newlyThere =
      line.state === 'committed' || line.resting
        ? line.settlingBytes
        : Math.min(outstandingOf(line), Math.max(0, bookedOf(committed) - (line.seenBytes ?? 0))) +
          (weights === undefined ? 0 : sharedOutstandingOf(weights));
    const after = {
      ...committed,
      settlingBytes: newlyThere,
      settlingSinceMs: line.state === 'committed' ? line.settlingSinceMs : nowMs,
    };
    const done = account.apply({
      lineBefore: line,
      lineAfter: after,
      sharedBefore: weights,
      sharedAfter: weights === undefined ? undefined : { ...weights, loaded: true },
    });
    return done ? ok(undefined) : fail('bad_input', tooMuch(line.name));
  }

  /**
   * The load is said to be done, but what has been measured of it is from before its memory came to
   * rest: what is predicted and not seen stays outstanding until `commit`.
   */
  rest(id: string): Result<void> {
    return this.#change(id, null, 'the measurement', (line) => ({
      ...line,
      resting: line.state === 'loading',
    }));
  }

  /** A better prediction, or none. Refuses nothing for lack of room: it states what is. */
  correct(id: string, predictedBytes: number | null): Result<void> {
    return this.#change(id, predictedBytes, 'the prediction', (line) => ({ ...line, predictedBytes }));
  }

  /** Unloaded, failed or dead: leaves no trace. Returns whether there was a line; again is no error. */
  release(id: string): boolean {
    const account = this.#deviceOf.get(id);
    const line = account?.lines.get(id);
    if (account === undefined || line === undefined) return false;
    const weights = line.sharedKey === null ? undefined : account.shared.get(line.sharedKey);
    account.apply({
      lineBefore: line,
      lineAfter: undefined,
      sharedBefore: weights,
      sharedAfter:
        weights === undefined || weights.holders === 1
          ? undefined
          : { ...weights, holders: weights.holders - 1 },
    });
    this.#deviceOf.delete(id);
    return true;
  }

  /** A figure that is no byte count is refused, and free is unknown until the next good reading (rule 5). */
  reconcile(deviceId: string, input: ReconcileInput): Result<void> {
    const account = this.#account(deviceId);
    if (account.reading !== null && input.sampledAtMs < account.reading.sampledAtMs) return ok(undefined);
    let bad: Result<void> = ok(undefined);
    for (const what of ['driverFreeBytes', 'hostAvailableBytes', 'totalBytes'] as const) {
      const checked = checkBytes(input[what], `${what} of ${deviceId}`);
      if (!checked.ok) bad = checked;
    }
    account.reading = {
      driverFreeBytes: bad.ok ? input.driverFreeBytes : null,
      hostAvailableBytes: bad.ok ? input.hostAvailableBytes : null,
      unified: input.unified,
      sampledAtMs: input.sampledAtMs,
      validForMs: input.validForMs ?? null,
    };
    if (bad.ok && input.totalBytes !== null)
      account.limits = { ...(account.limits ?? NO_LIMITS), totalBytes: input.totalBytes };
    if (bad.ok && input.driverFreeBytes !== null) account.settle(input.sampledAtMs);
    return bad;
  }

  /** null: no such device. With `nowMs`, a reading past its validity counts as unknown. */
  book(deviceId: string, nowMs: number | null = null): DeviceBook | null {
    return this.#accounts.get(deviceId)?.book(nowMs) ?? null;
  }

  /** Loads have just ended whose bytes no reading shows yet, and the denial is short of no more than these: it may be gone soon. */
  mayYetFit(deviceId: string, denial: Denial): boolean {
    const account = this.#accounts.get(deviceId);
    const unsureBytes = account === undefined ? 0 : account.settlingBytes + account.restingBytes();
    return unsureBytes > 0 && (denial.shortBytes === null || denial.shortBytes <= unsureBytes);
  }

  booking(id: string): Booking | null {
    const account = this.#deviceOf.get(id);
    const line = account?.lines.get(id);
    return account === undefined || line === undefined ? null : asBooking(account, line);
  }

  bookings(): readonly Booking[] {
    return [...this.#accounts.keys()].flatMap((deviceId) => this.bookedOn(deviceId));
  }

  bookedOn(deviceId: string): readonly Booking[] {
    const account = this.#accounts.get(deviceId);
    return account === undefined ? [] : [...account.lines.values()].map((line) => asBooking(account, line));
  }

  snapshot(): LedgerSnapshot {
    return {
      devices: [...this.#accounts.values()].map((account) => ({
        book: account.book(),
        reading: account.reading,
        settlingBytes: account.settlingBytes,
        settling: [...account.settling],
        resting: [...account.resting],
        shared: [...account.shared.values()],
        lines: [...account.lines.values()],
      })),
      index: Object.fromEntries([...this.#deviceOf].map(([id, account]) => [id, account.deviceId])),
    };
  }

  #account(deviceId: string): Account {
    const known = this.#accounts.get(deviceId);
    if (known !== undefined) return known;
    const account = new Account(deviceId);
    this.#accounts.set(deviceId, account);
    return account;
  }

  #again(request: ReserveRequest, held: Line): ReserveResult {
    if (request.forced !== true || held.deviceId !== request.deviceId) {
      const message = `${held.name} is booked on ${held.deviceId} already: wait for that load, or release it first.`;
      return this.#refuse(request, 'ALREADY_BOOKED', message);
    }
    if (held.predictedBytes === null && request.predictedBytes !== null) {
      const corrected = this.correct(held.id, request.predictedBytes);
      if (!corrected.ok) return this.#refuse(request, 'BAD_INPUT', corrected.error.message);
    }
    const booking = this.booking(held.id);
    return booking === null ? this.#refuse(request, 'BAD_INPUT', `${held.id} has gone.`) : ok(booking);
  }

  #change(id: string, bytes: number | null, what: string, next: (line: Line) => Line): Result<void> {
    const account = this.#deviceOf.get(id);
    const line = account?.lines.get(id);
    if (account === undefined || line === undefined) return missing(id);
    const checked = checkBytes(bytes, `${what} of ${line.name}`);
    if (!checked.ok) return checked;
    const done = account.apply({
      lineBefore: line,
      lineAfter: next(line),
      sharedBefore: undefined,
      sharedAfter: undefined,
    });
    return done ? ok(undefined) : fail('bad_input', tooMuch(line.name));
  }

  #refuse(request: ReserveRequest, code: Denial['code'], message: string): ReserveResult {
    const book = this.book(request.deviceId, isByteCount(request.nowMs) ? request.nowMs : null);
    const asked = (request.predictedBytes ?? 0) + (request.shared?.bytes ?? 0);
    return {
      ok: false,
      error: {
        code,
        message,
        capBytes: book?.capBytes ?? null,
        bookedBytes: book?.bookedBytes ?? 0,
        requestedBytes: isByteCount(asked) ? asked : 0,
        freeBytes: book?.freeBytes ?? null,
        floorBytes: book?.floorBytes ?? null,
        outstandingBytes: book?.outstandingBytes ?? 0,
        shortBytes: null,
      },
    };
  }
}

function badFigure(request: ReserveRequest): string | null {
  const figures = [
    ['predictedBytes', request.predictedBytes],
    ['shared bytes', request.shared?.bytes ?? null],
    ['creditBytes', request.creditBytes ?? null],
  ] as const;
  for (const [what, value] of figures)
    if (value !== null && !isByteCount(value)) return badBytes(value, `${what} of ${request.name}`);
  return null;
}

function newLine(request: ReserveRequest): Line {
  return {
    id: request.id,
    kind: request.kind,
    name: request.name,
    deviceId: request.deviceId,
    sinceMs: request.nowMs,
    predictedBytes: request.predictedBytes,
    seenBytes: null,
    measured: false,
    state: 'loading',
    resting: false,
    sharedKey: request.shared?.key ?? null,
    settlingBytes: 0,
    settlingSinceMs: null,
  };
}

function joined(
  weights: SharedWeights | undefined,
  asked: { readonly key: string; readonly bytes: number },
): SharedWeights {
  if (weights === undefined) return { ...asked, seenBytes: 0, loaded: false, holders: 1 };
  return { ...weights, bytes: Math.max(weights.bytes, asked.bytes), holders: weights.holders + 1 };
}

function asBooking(account: Account, line: Line): Booking {
  return toBooking(line, line.sharedKey === null ? undefined : account.shared.get(line.sharedKey));
}

function missing(id: string): Result<void> {
  return fail('bad_input', `No line ${id} is in the ledger: reserve it before anything else.`);
}

function tooMuch(name: string): string {
  return `With ${name} the book would pass 9007199254740991 bytes, where sums are no longer exact: check its size.`;
}
