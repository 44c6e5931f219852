import type { Settings } from '../../../shared/settings.ts';
import type { DeviceSample } from '../devices/sample.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { holdsMemory, type ModelView } from './model-view.ts';
import { type FloorFacts, limitsOf } from './world.ts';

/**
 * A sleeping model's process lives on with its device context: 150–460 MB under CUDA, about 400
 * under HIP (field measurements; llama.cpp issue 25570). Small, but not nothing.
 */
export const SLEEPING_BYTES = 400_000_000;

/** Limits and the last reading of every device (rule 3). A failed reading is unknown, never the last good one. */
export function bookDevices(
  ledger: Ledger,
  settings: Settings,
  devices: readonly DeviceSample[],
  facts: (deviceId: string) => FloorFacts,
): void {
  for (const sample of devices) {
    ledger.setLimits(sample.id, limitsOf(settings, sample, devices, facts(sample.id)));
    ledger.reconcile(sample.id, {
      driverFreeBytes: sample.error === null ? sample.freeBytes : null,
      hostAvailableBytes: sample.hostAvailableBytes,
      totalBytes: sample.totalBytes,
      unified: sample.memory !== 'discrete',
      sampledAtMs: sample.takenAtMs,
      validForMs: 3 * sample.periodMs,
    });
  }
}

export function bookingId(modelId: string): string {
  return `model:${modelId}`;
}

/**
 * Keeps the book in step with what the backends say (rule 3): a load seen is booked though nobody
 * asked us, one that is done is committed with its measured bytes once these are of a reading that
 * shows it at rest (one from amid its load would make the book too small), and one that is gone is released.
 * `promised`: booked by a load of ours, or for a request that wakes it, which its backend has not begun yet.
 */
export function bookModel(ledger: Ledger, view: ModelView, promised: boolean, nowMs: number): void {
  const id = bookingId(view.id);
  if (!holdsMemory(view.status) || view.deviceId === null) {
    if (!promised) ledger.release(id);
    return;
  }
  const booked = ledger.booking(id);
  if (booked !== null && booked.deviceId !== view.deviceId) ledger.release(id);
  const asleep = view.status === 'sleeping';
  // It is about to be woken.
  if (asleep && promised) return;
  if (ledger.booking(id) === null)
    ledger.reserve({
      id,
      kind: 'model',
      name: view.id,
      deviceId: view.deviceId,
      predictedBytes: asleep ? SLEEPING_BYTES : view.predictedBytes,
      forced: true,
      nowMs,
    });
  if (view.status === 'loading') {
    if (view.predictedBytes !== null) ledger.correct(id, view.predictedBytes);
    ledger.seen(id, view.measuredBytes);
    return;
  }
  const bytes = asleep ? (view.measuredBytes ?? SLEEPING_BYTES) : view.measuredBytes;
  const line = ledger.booking(id);
  if (view.atRest) {
    if (line?.state === 'loading') ledger.commit(id, bytes, nowMs);
    else ledger.seen(id, bytes);
    return;
  }
  if (line?.state === 'loading') ledger.rest(id);
  // Until then it only grows: what was predicted, or measured before, is not taken back.
  const heldBytes = line?.measuredBytes ?? 0;
  const least = line?.state === 'loading' ? heldBytes : Math.max(heldBytes, line?.predictedBytes ?? 0);
  if (bytes !== null && bytes > least) ledger.seen(id, bytes);
}
