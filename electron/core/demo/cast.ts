import type { SyntheticShape } from './synthetic-gguf.ts';

/**
 * Who plays the October morning: the card, its models, the desktop. The figures are those of the
 * article it is taken from, a Radeon of 34.2 GB that also drives the monitor.
 */
const GB = 1_000_000_000;

export const CARD_NAME = 'Simulated Radeon';
export const CARD_BYTES = 34.2 * GB;
export const BACKEND = 'router';

export interface Role {
  readonly name: string;
  readonly bytes: number;
  /** From the start of its process until it holds all of it. */
  readonly rampMs: number;
  /** From the start of its process until it asks for all of it at once; its load is held until then. */
  readonly bufferAtMs?: number;
  /** Always there: the guards leave it alone. */
  readonly resident: boolean;
  readonly contextTokens: number;
  /** Large enough to be caught in the middle of a request. */
  readonly shape: SyntheticShape;
}

const SMALL: SyntheticShape = {
  layers: 2,
  width: 64,
  feedForward: 256,
  heads: 4,
  kvHeads: 2,
  contextTokens: 2048,
  seed: 11,
};

/** 32 MB; a prompt of `LONG_PROMPT_CHARS` keeps one thread of it busy for far longer than the demo takes. */
const THOROUGH: SyntheticShape = {
  layers: 8,
  width: 256,
  feedForward: 1024,
  heads: 8,
  kvHeads: 4,
  contextTokens: 32_768,
  seed: 12,
};

export const LONG_PROMPT_CHARS = 28_000;

export const NINE: Role = {
  name: 'pipeline-9b',
  bytes: 10.6 * GB,
  rampMs: 500,
  resident: true,
  contextTokens: 2048,
  shape: SMALL,
};

export const EMBEDDER: Role = { ...NINE, name: 'bge-m3', bytes: 1.2 * GB };

/** With the context it had that morning. */
export const BIG: Role = {
  name: 'qwen-27b',
  bytes: 21.5 * GB,
  rampMs: 3_300,
  bufferAtMs: 3_300,
  resident: false,
  contextTokens: 2048,
  // Not the smallest: its process is to be seen before its load is over.
  shape: THOROUGH,
};

/** The same model in its final layout. */
export const LEAN_BIG: Role = { ...BIG, name: 'qwen-27b-lean', bytes: 18.6 * GB };

export const VISION: Role = {
  name: 'vision-8b',
  bytes: 6.9 * GB,
  rampMs: 500,
  resident: false,
  contextTokens: THOROUGH.contextTokens,
  shape: THOROUGH,
};

export const ROLES: readonly Role[] = [NINE, EMBEDDER, BIG, LEAN_BIG, VISION];

export const DESKTOP = {
  compositor: 0.3 * GB,
  browser: 0.25 * GB,
  /** What the browser has grown to later that morning. */
  browserLater: 0.55 * GB,
  player: 0.05 * GB,
  /** What the music player asks for in addition. */
  playerMore: 0.5 * GB,
} as const;

export const IDLE_MS = 2_000;

/** The guards' settings, in the person's own words of `config.yaml`: only watching at first. */
export function configText(cardPath: string, routerUrl: string): string {
  const residents = ROLES.filter((role) => role.resident).map((role) => role.name);
  return [
    'floor: 4GB',
    'cap: 100%',
    `idle: ${IDLE_MS / 1000}s`,
    'raceGrace: 1s',
    'guards: observe',
    `small: [${residents.join(', ')}]`,
    `pinned: [${residents.join(', ')}]`,
    'devices:',
    `  - { kind: simulated, path: ${JSON.stringify(cardPath)} }`,
    'backends:',
    `  - { name: ${BACKEND}, kind: llama.cpp, url: ${JSON.stringify(routerUrl)} }`,
    'footprints:',
    ...ROLES.map((role) => `  ${role.name}: ${role.bytes}`),
    '',
  ].join('\n');
}

/** The router's own presets. One thread each: a busy model is to stay busy on a fast machine too. */
export function presetsText(pathOf: (shape: SyntheticShape) => string): string {
  const sections = ROLES.map((role) =>
    [
      `[${role.name}]`,
      `model = ${pathOf(role.shape)}`,
      `ctx-size = ${role.contextTokens}`,
      'parallel = 1',
      'metrics = true',
      'threads = 1',
      'threads-batch = 1',
      // The whole prompt as one batch: nothing asks it to stop before it is through, as with a page on a GPU.
      `batch-size = ${role.contextTokens}`,
      '',
    ].join('\n'),
  );
  return ['version = 1', '', ...sections].join('\n');
}
