import { assertNever } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { Outcome } from '../actuators/operation.ts';

/** Less than this came back: the eviction did not help, and is not repeated (rule 13). */
export const FREED_NOTHING_BYTES = 64 * 1024 * 1024;

/** The event an operation's outcome leaves, in words and numbers; null for one that is nobody's news. */
export function eventOf(outcome: Outcome): NewEvent | null {
  const { operation } = outcome;
  const base = {
    model: operation.modelId,
    backend: operation.modelId.slice(0, operation.modelId.indexOf('/')),
    ...(operation.deviceId === null ? {} : { deviceId: operation.deviceId }),
  };
  switch (outcome.type) {
    case 'left': {
      const numbers = {
        ...operation.numbers,
        freedBytes: outcome.freedBytes,
        heldBytes: operation.heldBytes,
        freeBeforeBytes: operation.freeBeforeBytes,
        tookMs: Math.round(outcome.tookMs),
        settleMs:
          operation.killedAtMs === null ? null : Math.round((operation.goneAtMs ?? 0) - operation.killedAtMs),
      };
      const back =
        outcome.freedBytes === null
          ? `It left after ${formatDuration(outcome.tookMs)}; how much came back can't be told.`
          : `${formatBytes(outcome.freedBytes)} came back in ${formatDuration(outcome.tookMs)}.`;
      const cut = outcome.killed
        ? ' It did not leave in time, so its process was ended; it loads again when asked.'
        : '';
      if (operation.cause === 'person')
        return {
          ...base,
          kind: outcome.killed ? 'killed' : 'unloaded',
          reason: `${operation.reason} ${back}`,
          numbers,
        };
      return {
        ...base,
        kind: outcome.killed ? 'killed' : 'evicted',
        reason: `${inThePast(operation.reason)}${cut} ${back}`,
        numbers,
      };
    }
    case 'busy':
      return null;
    case 'failed':
      return {
        ...base,
        kind: 'eviction_failed',
        reason: `${operation.reason} That failed: ${outcome.message}`,
        numbers: operation.numbers,
      };
    case 'stuck':
      return {
        ...base,
        kind: 'eviction_failed',
        reason: `${operation.reason} It is still there after ${formatDuration(outcome.waitedMs)}, most likely behind a running request.${
          operation.signalNote === null ? '' : ` ${operation.signalNote}`
        }`,
        numbers: { ...operation.numbers, waitedMs: Math.round(outcome.waitedMs) },
      };
    case 'signal_refused':
      return { ...base, kind: 'signal_refused', reason: outcome.message, numbers: operation.numbers };
    default:
      return assertNever(outcome, 'outcome');
  }
}

/** A decision speaks of what is about to be done; its event tells of what was. */
function inThePast(reason: string): string {
  return reason
    .replace(/^Unloading /, 'Unloaded ')
    .replaceAll(' is free', ' was free')
    .replace('(it is cut off', '(it was cut off');
}

/** Whether an eviction gave back so little that repeating it would be pointless. */
export function gaveNothing(outcome: Outcome): boolean {
  return outcome.type === 'left' && outcome.freedBytes !== null && outcome.freedBytes < FREED_NOTHING_BYTES;
}
