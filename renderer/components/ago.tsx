import { memo } from 'react';
import { strings } from '../strings.ts';
import { ageText, epochMs } from '../view/figures.ts';
import { useModel, useTimed } from './context.ts';

/** How long ago, or how soon, in words that go on by themselves. */
export const Ago = memo(function Ago({ atMs, write }: { atMs: number; write: (age: string) => string }) {
  return <>{useTimed((nowMs) => write(ageText(Math.max(0, nowMs - atMs))))}</>;
});

export const LeavesIn = memo(function LeavesIn({ atMs }: { atMs: number }) {
  const text = useTimed((nowMs) =>
    atMs <= nowMs ? strings.models.leavesNow : strings.models.leavesIn(ageText(atMs - nowMs)),
  );
  return <>{text}</>;
});

/**
 * Age of a device's reading, apart from its card: it changes with each tick and the card does not. Read
 * from the replica as the clock ticks, so that it moves once a second and not with each reading.
 */
export const ReadAgo = memo(function ReadAgo({ deviceId }: { deviceId: string }) {
  const { replica } = useModel();
  const text = useTimed((nowMs) => {
    const device = replica.getState().state?.devices.find((entry) => entry.id === deviceId);
    const atMs = epochMs(device?.sampledAt ?? null);
    return atMs === null ? strings.device.neverRead : strings.device.readAgo(ageText(nowMs - atMs));
  });
  return <span className="age">{text}</span>;
});
