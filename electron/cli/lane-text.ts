import { formatDuration } from '../../shared/format.ts';
import type { LaneHolderState, LaneState } from '../../shared/state.ts';
import { columns, paint, plain, type Terminal } from './terminal.ts';

/** One line for each lane that the config sets or that somebody has or waits for. */
export function laneLines(
  lanes: readonly LaneState[],
  nowMs: number,
  look: Pick<Terminal, 'color'>,
): string[] {
  const rows = lanes
    .filter((lane) => lane.configured || lane.held === true || lane.holders.length > 0 || lane.waiting > 0)
    .map((lane) => [
      plain(lane.backend),
      useText(lane, look),
      [
        ...lane.holders.map((holder) => plain(holderText(holder, nowMs))),
        ...(lane.waiting > 0 ? [`${lane.waiting} waiting`] : []),
      ].join('; '),
    ]);
  return columns(rows);
}

function useText(lane: LaneState, look: Pick<Terminal, 'color'>): string {
  const { held, holders, width } = lane;
  if (held === true) return paint(look, 'warning', width === 1 ? 'held' : `all ${width} held`);
  if (held === null) return 'unknown';
  return paint(look, 'good', holders.length === 0 ? 'free' : `${width - holders.length} of ${width} free`);
}

function holderText(holder: LaneHolderState, nowMs: number): string {
  const { session, pid, command, model, acquiredAt } = holder;
  const age = acquiredAt === null ? null : Math.max(0, nowMs - Date.parse(acquiredAt));
  const parts = [
    session === null ? 'session unknown' : `session ${session}`,
    model,
    holder.class,
    pid === null ? 'a process that can’t be seen' : `pid ${pid}${command === null ? '' : ` ${command}`}`,
    age === null || Number.isNaN(age) ? 'age unknown' : `for ${formatDuration(age)}`,
  ];
  return parts.filter((part) => part !== null).join(', ');
}
