import { formatBytes } from '../../../shared/format.ts';
import { isResident } from '../guards/candidates.ts';
import type { GuardModel } from '../guards/world.ts';
import type { DeviceBook } from '../ledger/booking.ts';

/** What loading a model against the book may bring, in sentences, the worst first. Pure. */
export function risksOf(
  book: DeviceBook | null,
  needBytes: number | null,
  models: readonly GuardModel[],
  modelId: string,
): readonly string[] {
  if (book === null || book.freeBytes === null)
    return [
      'How much memory is free there is not known: the load may fail, or push other programs into slow memory.',
    ];
  if (needBytes === null) return ['How much it needs is not known: it may take all that is free, and more.'];
  const { freeBytes, floorBytes, hardFloorBytes, capBytes, bookedBytes, outstandingBytes } = book;
  const left = freeBytes - outstandingBytes - needBytes;
  const risks: string[] = [];
  if (left < 0)
    risks.push(
      `It needs ${formatBytes(-left)} more than is free: its server may fail to load it, or the driver moves graphics memory of other programs into slow system memory and the desktop stutters.`,
    );
  else if (hardFloorBytes !== null && left < hardFloorBytes)
    risks.push(`${formatBytes(left)} would be left for the desktop: windows may stutter or fail to open.`);
  else if (floorBytes !== null && left < floorBytes)
    risks.push(
      `${formatBytes(left)} would be left, ${formatBytes(floorBytes - left)} less than the desktop should have.`,
    );
  const overBytes = capBytes === null ? 0 : bookedBytes + needBytes - capBytes;
  if (overBytes > 0)
    risks.push(`Models would have booked ${formatBytes(overBytes)} more than the cap allows them.`);
  if (floorBytes !== null && left < floorBytes) {
    const leavers = models.filter((model) => mayLeave(model, book.deviceId, modelId)).map(({ id }) => id);
    risks.push(
      leavers.length === 0
        ? 'Nothing here may be unloaded to make up for it.'
        : `The guards would unload ${leavers.join(', ')} once idle, and ${modelId} itself when it has been idle for long enough.`,
    );
  }
  return risks;
}

function mayLeave(model: GuardModel, deviceId: string, newcomer: string): boolean {
  return (
    model.id !== newcomer &&
    model.deviceId === deviceId &&
    model.status === 'loaded' &&
    model.guarded === 'on' &&
    !model.pinned &&
    !isResident(model)
  );
}
