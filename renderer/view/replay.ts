/** What a replay found, in words and figures. Pure. */
import { formatDuration } from '../../shared/format.ts';
import type { Replay, ReplayRun } from '../../shared/questions.ts';
import { strings } from '../strings.ts';

export interface ReplayRow {
  readonly name: string;
  readonly present: string;
  readonly asked: string;
  /** null: no difference. */
  readonly better: boolean | null;
}

const words = strings.replay;

/** `2 unloads, 1 of them loaded again; memory was short once.` */
export function runSentence(run: ReplayRun): string {
  return words.sentence(
    words.unloads(run.evictions),
    words.reloaded(run.reloads),
    words.short(run.shortfalls),
  );
}

export function replayTable({ present, asked }: Replay): readonly ReplayRow[] {
  const row = (name: string, now: number, then: number, write: (value: number) => string): ReplayRow => ({
    name,
    present: write(now),
    asked: write(then),
    better: now === then ? null : then < now,
  });
  const time = (ms: number): string => (ms === 0 ? '0' : formatDuration(ms));
  return [
    row(words.evictions, present.evictions, asked.evictions, String),
    row(words.reloads, present.reloads, asked.reloads, String),
    row(words.shortfalls, present.shortfalls, asked.shortfalls, String),
    row(words.underFloor, present.underFloorMs, asked.underFloorMs, time),
    row(words.underHardFloor, present.underHardFloorMs, asked.underHardFloorMs, time),
  ];
}
