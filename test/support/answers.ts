/** Answers of the runtime, as the page's tests and its screenshots have them. */
import type {
  History,
  LoadPlan,
  Observation,
  Replay,
  ReplayRun,
  SettingEntry,
  SettingsView,
} from '../../shared/questions.ts';

export function samplePlan(change: Partial<LoadPlan>): LoadPlan {
  return {
    model: 'router/qwen-27b',
    verdict: 'now',
    deviceId: 'pci:0000:03:00.0',
    needBytes: 18.6e9,
    needFrom: 'measured before',
    freeBytes: 20.7e9,
    floorBytes: 4e9,
    capBytes: 30.78e9,
    bookedBytes: 11.8e9,
    outstandingBytes: 0,
    leaving: [],
    freeAfterBytes: 2.1e9,
    denial: null,
    risks: [],
    alwaysAnyway: false,
    contexts: [
      { tokens: 8192, bytes: 17.4e9, verdict: 'now', present: false },
      { tokens: 32_768, bytes: 18.6e9, verdict: 'leaving', present: true },
      { tokens: 131_072, bytes: 24.1e9, verdict: 'denied', present: false },
    ],
    ...change,
  };
}

const MINUTE = 60_000;

/** An hour on a 34.2 GB card: a desktop that breathes, a resident model, and one that came and left. */
export function sampleHistory(change: Partial<History>, nowMs: number = Date.now()): History {
  const stepMs = 10_000;
  const fromMs = nowMs - 60 * MINUTE;
  const atMs = Array.from({ length: 360 }, (_, index) => fromMs + index * stepMs);
  const desktop = atMs.map((_, index) => 1.6e9 + 3e8 * Math.sin(index / 23) + (index > 250 ? 9e8 : 0));
  const resident = atMs.map(() => 10.6e9);
  const big = atMs.map((_, index) => (index < 60 || index > 280 ? 0 : Math.min(17.8e9, (index - 60) * 3e9)));
  const used = atMs.map(
    (_, index) => (desktop[index] ?? 0) + (resident[index] ?? 0) + (big[index] ?? 0) + 1e8,
  );
  return {
    fromMs,
    toMs: nowMs,
    stepMs,
    devices: [
      {
        deviceId: 'pci:0000:03:00.0',
        atMs,
        totalBytes: atMs.map(() => 34.2e9),
        usedBytes: used,
        freeBytes: used.map((bytes) => 34.2e9 - bytes),
        gttUsedBytes: atMs.map(() => 2e8),
        tenants: [
          { id: 'desktop@pci:0000:03:00.0', bytes: desktop },
          { id: 'router/pipeline-9b', bytes: resident },
          { id: 'router/qwen-27b', bytes: big },
        ],
      },
    ],
    events: [
      {
        id: 41,
        at: new Date(fromMs + 610_000).toISOString(),
        kind: 'loaded',
        model: 'router/qwen-27b',
        reason: 'qwen-27b is loaded: 17.8 GB measured, 18.6 GB predicted.',
        numbers: {},
      },
      {
        id: 42,
        at: new Date(fromMs + 2_795_000).toISOString(),
        kind: 'floor_threatened',
        reason: 'Free memory is 3.1 GB, and 4 GB is kept for the desktop. firefox grew by 0.9 GB.',
        numbers: { freeBytes: 3.1e9, floorBytes: 4e9 },
      },
      {
        id: 43,
        at: new Date(fromMs + 2_805_000).toISOString(),
        kind: 'evicted',
        model: 'router/qwen-27b',
        reason:
          'Unloading qwen-27b: 3.1 GB is free and 4 GB is kept for the desktop. 17.8 GB came back in 1.1 s.',
        numbers: { freedBytes: 17.8e9 },
      },
    ],
    floors: [
      {
        deviceId: 'pci:0000:03:00.0',
        suggestedBytes: 1.32e9,
        presentBytes: 4e9,
        recordedHours: 41.5,
        floorKey: 'floor',
        alsoFor: [],
      },
    ],
    ...change,
  };
}

export function sampleReplay(change: Partial<Replay>): Replay {
  const run: ReplayRun = {
    floorBytes: 4e9,
    maxBig: 'fit',
    evictions: 3,
    reloads: 2,
    shortfalls: 3,
    underFloorMs: 140_000,
    underHardFloorMs: 0,
    models: [{ model: 'router/qwen-27b', evictions: 3, reloads: 2 }],
  };
  const toMs = Date.now();
  return {
    deviceId: 'pci:0000:03:00.0',
    fromMs: toMs - 41 * 60 * MINUTE,
    toMs,
    readings: 14_760,
    present: run,
    asked: { ...run, floorBytes: 6e9, evictions: 5, reloads: 4, shortfalls: 5, underFloorMs: 310_000 },
    notes: ['One reading in ten seconds is kept, so shorter peaks are not in it.'],
    ...change,
  };
}

const ENTRY: SettingEntry = {
  key: 'floor',
  kind: 'size',
  meaning: 'Memory kept free for the desktop. Default: 12.5% of the device, at most 4GB, at least 512MiB.',
  defaultText: null,
  unit: 'GB, MiB or % of the device',
  choices: ['auto', 'free', 'share'],
  parts: [
    { key: 'keep', meaning: 'Kept free for the desktop.', choices: ['auto'], defaultText: null },
    {
      key: 'hard',
      meaning: 'What a big model that is alone may go down to.',
      choices: [],
      defaultText: null,
    },
  ],
  yaml: '4GB',
};

export function sampleSettings(change: Partial<SettingsView>): SettingsView {
  return {
    file: '/home/ada/.config/vram-landlord/config.yaml',
    fingerprint: 'abc',
    rejection: null,
    firstRun: false,
    entries: [
      ENTRY,
      {
        ...ENTRY,
        key: 'idle',
        kind: 'duration',
        meaning: 'A model this long after the end of its last request, with no slot processing, is idle.',
        defaultText: '180s',
        unit: 's, min, h or d',
        choices: [],
        parts: [],
        yaml: null,
      },
      {
        ...ENTRY,
        key: 'race',
        kind: 'choice',
        meaning: 'Who gives way in a loading race.',
        defaultText: 'class',
        unit: null,
        choices: ['class', 'resident', 'newcomer'],
        parts: [],
        yaml: null,
      },
      {
        ...ENTRY,
        key: 'pinned',
        kind: 'list',
        meaning: 'Never evicted.',
        unit: null,
        choices: [],
        parts: [],
        yaml: '- bge-m3 # the index needs it',
      },
      {
        ...ENTRY,
        key: 'backends',
        kind: 'list',
        meaning: 'The servers that are watched and guarded.',
        unit: null,
        choices: [],
        parts: [{ key: 'lanes', meaning: 'Turns at a time.', choices: [], defaultText: null }],
        yaml: null,
      },
    ],
    ...change,
  };
}

export function sampleObservation(change: Partial<Observation>): Observation {
  return { sinceMs: null, stalls: 0, models: [], firstRun: false, ...change };
}
