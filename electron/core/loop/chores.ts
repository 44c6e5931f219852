/** What is looked after now and then while the runtime runs. */
export interface Chores {
  /** Servers nearby, processes without a server, files that are too old. */
  look(): void;
  /** Left out: 30 s. */
  readonly lookEveryMs?: number | undefined;
  /** Floors from the desktop's own use. */
  learn(): void;
  /** A row for the history. */
  record(everyMs: number): void;
}

const LOOK_EVERY_MS = 30_000;
const RECORD_EVERY_MS = 10_000;
const LEARN_EVERY_MS = 600_000;

/** Returns what ends it. */
export function startChores(chores: Chores): () => void {
  const timers = [
    setInterval(() => chores.look(), chores.lookEveryMs ?? LOOK_EVERY_MS),
    setInterval(() => chores.learn(), LEARN_EVERY_MS),
    setInterval(() => chores.record(RECORD_EVERY_MS), RECORD_EVERY_MS),
  ];
  const first = setTimeout(() => chores.learn(), RECORD_EVERY_MS);
  return () => {
    clearTimeout(first);
    for (const timer of timers) clearInterval(timer);
  };
}
