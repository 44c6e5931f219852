import { isByteCount } from './bytes.ts';
import type { LedgerSnapshot } from './ledger.ts';
import type { Line, SharedWeights } from './lines.ts';

type DeviceSnapshot = LedgerSnapshot['devices'][number];

/**
 * What must hold of a ledger after every step; one sentence for each thing that does not. Sums are
 * worked out here from the lines alone, in whole-number arithmetic, so a running sum that drifts shows.
 */
export function checkInvariants(snapshot: LedgerSnapshot): string[] {
  const wrong: string[] = [];
  const homes = new Map<string, string>();
  for (const device of snapshot.devices) {
    wrong.push(...checkDevice(device));
    for (const line of device.lines) {
      if (homes.has(line.id)) wrong.push(`${line.id} is on two devices`);
      homes.set(line.id, device.book.deviceId);
    }
  }
  for (const [id, deviceId] of homes)
    if (snapshot.index[id] !== deviceId) wrong.push(`${id} is on ${deviceId} but can't be found there`);
  for (const id of Object.keys(snapshot.index))
    if (!homes.has(id)) wrong.push(`${id} left a trace in the index`);
  return wrong;
}

function checkDevice({
  book,
  reading,
  settlingBytes,
  settling,
  resting,
  shared,
  lines,
}: DeviceSnapshot): string[] {
  const wrong: string[] = [];
  const at = book.deviceId;
  for (const [what, value] of [
    ['booked', book.bookedBytes],
    ['outstanding', book.outstandingBytes],
    ['settling', settlingBytes],
    ['free', book.freeBytes],
  ] as const)
    if (value !== null && !isByteCount(value)) wrong.push(`${what} on ${at} is ${value}`);

  const sum = (values: readonly number[]) => values.reduce((total, value) => total + BigInt(value), 0n);
  const booked = sum(lines.map(booking)) + sum(shared.map((w) => Math.max(w.bytes, w.seenBytes)));
  const outstanding = sum(lines.map(missing)) + sum(shared.map(missingWeights));
  if (booked !== BigInt(book.bookedBytes))
    wrong.push(`booked on ${at} is ${book.bookedBytes}, the lines say ${booked}`);
  if (outstanding !== BigInt(book.outstandingBytes))
    wrong.push(`outstanding on ${at} is ${book.outstandingBytes}, the lines say ${outstanding}`);
  if (outstanding > booked) wrong.push(`more is outstanding than booked on ${at}`);
  if (sum(lines.map((line) => line.settlingBytes)) !== BigInt(settlingBytes))
    wrong.push(`settling on ${at} is not what its lines say`);
  const unsettled = lines.filter((line) => line.settlingBytes > 0).map((line) => line.id);
  if (new Set(settling).size !== settling.length || settling.length !== unsettled.length)
    wrong.push(`the list of settling lines on ${at} is not what its lines say`);
  const atRestSoon = lines.filter((line) => line.resting).map((line) => line.id);
  if (new Set(resting).size !== resting.length || resting.length !== atRestSoon.length)
    wrong.push(`the list of resting lines on ${at} is not what its lines say`);

  for (const line of lines) {
    if (line.deviceId !== at) wrong.push(`${line.id} stands on ${at} but names ${line.deviceId}`);
    if (line.state === 'loading' && line.settlingBytes > 0) wrong.push(`${line.id} settles while it loads`);
    if (line.state === 'committed' && line.resting) wrong.push(`${line.id} rests though it is committed`);
    if (line.sharedKey !== null && !shared.some((weights) => weights.key === line.sharedKey))
      wrong.push(`${line.id} shares ${line.sharedKey}, which is not booked`);
  }
  for (const weights of shared) {
    const holders = lines.filter((line) => line.sharedKey === weights.key);
    if (holders.length !== weights.holders || holders.length === 0)
      wrong.push(
        `${weights.key} on ${at} counts ${weights.holders} holders, ${holders.length} lines share it`,
      );
    if (!weights.loaded && holders.some((line) => line.state === 'committed'))
      wrong.push(`${weights.key} on ${at} is held by a loaded line but not loaded`);
  }

  const driver = reading?.driverFreeBytes ?? null;
  if (driver === null && book.freeBytes !== null) wrong.push(`free on ${at} is invented`);
  if (driver !== null && book.freeBytes === null) wrong.push(`free on ${at} is lost`);
  if (driver !== null && book.freeBytes !== null) {
    if (book.freeBytes > driver) wrong.push(`free on ${at} is more than the driver says`);
    const host = reading?.unified === true ? reading.hostAvailableBytes : null;
    if (host !== null && book.freeBytes > host) wrong.push(`free on ${at} is more than the system has`);
    const there = Number(booked - outstanding);
    if (book.totalBytes !== null && book.freeBytes > Math.max(0, book.totalBytes - there))
      wrong.push(`free on ${at} is more than total minus the book`);
  }
  return wrong;
}

function booking(line: Line): number {
  const seen = line.seenBytes ?? 0;
  if (line.measured) return seen;
  return line.predictedBytes !== null && line.predictedBytes > seen ? line.predictedBytes : seen;
}

function missing(line: Line): number {
  if (line.state !== 'loading' || line.predictedBytes === null) return 0;
  return line.predictedBytes > (line.seenBytes ?? 0) ? line.predictedBytes - (line.seenBytes ?? 0) : 0;
}

function missingWeights(weights: SharedWeights): number {
  return weights.loaded || weights.seenBytes >= weights.bytes ? 0 : weights.bytes - weights.seenBytes;
}
