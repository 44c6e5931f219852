import type { Settings } from '../../../shared/settings.ts';

/** What is in force where the config says nothing (design §5.6): nothing named, so nothing is acted on. */
export function defaults(): Settings {
  return {
    floor: { keep: null, hard: null, mode: 'free' },
    cap: { share: 0.9 },
    idleMs: 180_000,
    raceGraceMs: 1000,
    guards: null,
    maxBig: 'fit',
    race: 'class',
    big: { atLeastBytes: 2_000_000_000 },
    small: [],
    batchOnly: [],
    ttlMs: {},
    pinned: [],
    devices: null,
    backends: null,
    footprints: {},
    fallbacks: [],
    agents: {},
    server: { port: 7781, apiKeyEnv: null, origins: [] },
  };
}

/** In force while a config exists but none of its versions could be read: watch, and touch nothing. */
export function cautiousDefaults(): Settings {
  return { ...defaults(), guards: 'observe' };
}
