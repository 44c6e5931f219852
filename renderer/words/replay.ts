export const replayWords = {
  title: 'Run the recorded days again',
  intro: 'Drag the floor, or hold one big model at a time, and see what the guards would have done.',
  floor: 'Kept free for the desktop',
  oneBig: 'One big model at a time',
  days: (days: string) => `Over ${days} of record.`,
  working: 'Running them again …',
  sameAsNow: 'As it is set now',
  asSet: (bytes: string) => `as set now: ${bytes}`,
  what: 'What',
  now: 'As set now',
  so: 'So',
  evictions: 'Models unloaded by the guards',
  reloads: 'Loaded again, since they were used',
  shortfalls: 'Times memory was short',
  underFloor: 'Time under the floor',
  underHardFloor: 'Time under half of it',
  times: (count: number) => (count === 1 ? 'once' : `${count} times`),
  sentence: (evictions: string, reloads: string, shortfalls: string) =>
    `${evictions}, ${reloads}; ${shortfalls}.`,
  unloads: (count: number) =>
    count === 0 ? 'No model would have been unloaded' : count === 1 ? '1 unload' : `${count} unloads`,
  reloaded: (count: number) =>
    count === 0
      ? 'none loaded again'
      : count === 1
        ? '1 of them loaded again'
        : `${count} of them loaded again`,
  short: (count: number) =>
    count === 0
      ? 'memory was never short'
      : count === 1
        ? 'memory was short once'
        : `memory was short ${count} times`,
  take: (bytes: string) => `Keep ${bytes} free`,
  takeBig: 'Hold one big model at a time',
  takeFit: 'Hold as many as fit',
  taken: 'It is set. The runtime works by it from now on.',
  models: 'By model',
} as const;
