/** What a replay found, in words and figures: the same in the window and on the command line. Pure. */
import { formatDuration } from './format.ts';
import type { Replay, ReplayRun } from './questions.ts';

export interface ReplayRow {
  readonly name: string;
  readonly present: string;
  readonly asked: string;
  /** null: no difference. */
  readonly better: boolean | null;
}

/** `2 unloads, 1 of them loaded again; memory was short once.` */
export function replaySentence({ evictions, reloads, shortfalls }: ReplayRun): string {
  const unloads =
    evictions === 0
      ? 'No model would have been unloaded'
      : evictions === 1
        ? '1 unload'
        : `${evictions} unloads`;
  const again = reloads === 0 ? 'none loaded again' : `${reloads} of them loaded again`;
  const short =
    shortfalls === 0
      ? 'memory was never short'
      : `memory was short ${shortfalls === 1 ? 'once' : `${shortfalls} times`}`;
  return `${unloads}, ${again}; ${short}.`;
}

export function replayRows({ present, asked }: Replay): readonly ReplayRow[] {
  const row = (name: string, now: number, then: number, write: (value: number) => string): ReplayRow => ({
    name,
    present: write(now),
    asked: write(then),
    better: now === then ? null : then < now,
  });
  const time = (ms: number): string => (ms === 0 ? '0' : formatDuration(ms));
  return [
    row('Models unloaded by the guards', present.evictions, asked.evictions, String),
    row('Loaded again, since they were used', present.reloads, asked.reloads, String),
    row('Times memory was short', present.shortfalls, asked.shortfalls, String),
    row('Time under the floor', present.underFloorMs, asked.underFloorMs, time),
    row('Time under half of it', present.underHardFloorMs, asked.underHardFloorMs, time),
  ];
}
