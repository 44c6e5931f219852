import { z } from 'zod';
import type { FloorSettings } from '../../../shared/settings.ts';
import {
  byteCount,
  duration,
  listOf,
  mapping,
  namePattern,
  oneOf,
  pageOrigin,
  plainName,
  recordOf,
  shown,
  size,
  text,
  url,
  variableName,
  wholeNumber,
} from './fields.ts';

/**
 * The YAML of design §5.6. Every key is optional, and a key with nothing after it counts as absent, so
 * that its lines can be commented out. Descriptions and defaults also go into the published JSON Schema.
 */
const DAY_MS = 86_400_000;

const guardsMode = oneOf(['on', 'observe']);

const floorMapping = mapping(
  {
    keep: z
      .union([z.literal('auto'), size], { error: floorSentence })
      .nullish()
      .meta({ description: 'Kept free for the desktop.' }),
    hard: size
      .nullish()
      .meta({ description: 'What a big model that is alone may go down to. Default: half of keep.' }),
    mode: oneOf(['free', 'share']).nullish().meta({
      description: 'free: this much stays free. share: what the desktop already uses counts towards it.',
      'x-default': 'free',
    }),
  },
  'a floor',
);

function floorSentence(issue: { readonly input?: unknown }): string {
  return `${shown(issue.input)} is not a floor; write 4GB, 12.5%, auto, or { keep: 4GB, hard: 2GB }`;
}

const floor = z
  .union([z.literal('auto'), size, floorMapping], { error: floorSentence })
  .transform((value): FloorSettings => {
    if (value === 'auto') return { keep: 'auto', hard: null, mode: 'free' };
    if ('bytes' in value || 'share' in value) return { keep: value, hard: null, mode: 'free' };
    return { keep: value.keep ?? null, hard: value.hard ?? null, mode: value.mode ?? 'free' };
  })
  .meta({
    description:
      'Memory kept free for the desktop: a size, a share, auto (learned from the desktop), or keep, hard and mode. ' +
      'Default: 12.5% of the device, at most 4GB, at least 512MiB.',
    examples: ['4GB', 'auto'],
  });

function limitSentence(issue: { readonly input?: unknown }): string {
  return `${shown(issue.input)} is not a limit; write 16GB or off`;
}

const models = listOf(namePattern, '[qwen-27b, /vision/]');
const deviceFloor = floor.nullish();
const deviceMemory = oneOf(['unified', 'discrete']).nullish().meta({
  description:
    "unified: the card shares the system's memory (APU, Jetson, DGX Spark). discrete: it has its own. Not set: told by the machine.",
});

const deviceKinds =
  "amdgpu and nvidia: cards. system: the machine's own memory, where models run without a card. simulated: a file that stands for a card.";

const device = z.discriminatedUnion(
  'kind',
  [
    mapping(
      {
        kind: z.literal('amdgpu').meta({ description: deviceKinds }),
        path: absolutePath('/sys/class/drm/card1/device').nullish().meta({
          description:
            'Under /sys/class/drm, or /sys/bus/pci/devices where card numbers shift. Not set: every card of this kind that no other entry names.',
        }),
        memory: deviceMemory,
        floor: deviceFloor,
      },
      'a device',
    ),
    mapping(
      {
        kind: z.literal('nvidia'),
        smi: text('a program', 'nvidia-smi')
          .nullish()
          .meta({ description: 'The nvidia-smi to ask where NVML can not be loaded.' }),
        memory: deviceMemory,
        floor: deviceFloor,
      },
      'a device',
    ),
    mapping({ kind: z.literal('system'), floor: deviceFloor }, 'a device'),
    mapping(
      { kind: z.literal('simulated'), path: absolutePath('/tmp/card.json'), floor: deviceFloor },
      'a device',
    ),
  ],
  {
    error: (issue) => {
      const kinds = 'amdgpu, nvidia, system or simulated';
      return issue.code === 'invalid_union'
        ? `this kind of device is not known; write ${kinds}`
        : `this is not a device; write for instance { kind: nvidia }`;
    },
  },
);

function absolutePath(example: string) {
  return text('a path', example).refine((value) => value.startsWith('/') || value.startsWith('~/'), {
    error: `a path here begins with / or ~/; write for instance ${example}`,
  });
}

const port = wholeNumber(1, 65_535, 'a port');

const backend = mapping(
  {
    name: plainName.meta({ description: "Its models' ids are name/model." }),
    kind: oneOf(['llama.cpp', 'llama-swap', 'ollama', 'lmstudio', 'lemonade', 'embedded', 'openai']).meta({
      description:
        'What answers there. embedded: the engine inside VRAM Landlord. openai: any other server, watched only.',
    }),
    url: url.nullish().meta({ description: 'Where it listens; /v1 at the end is left out.' }),
    lanes: wholeNumber(1, 64, 'a number of lanes')
      .nullish()
      .meta({ description: 'Turns at a time that the gateway lets through; not set: it takes no lane.' }),
    lane: oneOf(['backend', 'model', 'device']).nullish().meta({
      description:
        'What shares one lane: the backend; each of its models by itself; or all backends with lane: device on the same device.',
      'x-default': 'backend',
    }),
    front: port.nullish().meta({ description: 'A second port before it, whose lane is taken first.' }),
    command: z
      .array(text('a part of a command', '[llama-server, --port, "8081"]'), {
        error: 'this is not a list; write the command in parts: [llama-server, --port, "8081"]',
      })
      .min(1, { error: 'the command is empty; write it in parts: [llama-server, --port, "8081"]' })
      .nullish()
      .meta({ description: 'How it is started, in parts; no shell reads it.' }),
    models: recordOf(text('a path', '~/models/smol.gguf'), '{ smol: ~/models/smol.gguf }')
      .nullish()
      .meta({ description: 'For kind embedded: names and GGUF files.' }),
    device: text('a device id', '"pci:0000:03:00.0"')
      .nullish()
      .meta({ description: 'Where its models live. Not set: worked out from the machine.' }),
    guards: guardsMode.nullish().meta({ description: 'Of this backend alone.' }),
    assumeIdle: duration(1000, 30 * DAY_MS, 'a time from 1s to 30d')
      .nullish()
      .meta({
        description:
          'Where a server does not tell whether a model works, it counts as idle this long after its last sign of use, such as 10m. Not set: as busy, so that no guard evicts it.',
      }),
    start: oneOf(['now', 'use']).nullish().meta({
      description: 'When command is run: with VRAM Landlord, or with the first request for this backend.',
      'x-default': 'now',
    }),
    apiKeyEnv: variableName.nullish().meta({ description: 'The environment variable that holds its key.' }),
  },
  'a backend',
);

const fallback = mapping(
  {
    name: plainName.meta({ description: 'As events and headers call it.' }),
    url: url.meta({ description: 'The OpenAI-compatible address, with its /v1.' }),
    apiKeyEnv: variableName.nullish().meta({ description: 'The environment variable that holds its key.' }),
    models: recordOf(text('a model name', 'some-model'), '{ "*": some-model }').nullish().meta({
      description: 'What each model is called there; "*" stands for all others. Not set: the same names.',
    }),
  },
  'a fallback',
);

const agent = mapping(
  {
    class: oneOf(['interactive', 'batch'])
      .nullish()
      .meta({ 'x-default': 'interactive', description: 'interactive goes before batch.' }),
    onBusy: oneOf(['fallback', 'wait', 'reject']).nullish().meta({
      description: 'What happens while the lane is busy. Default: fallback for interactive, wait for batch.',
    }),
  },
  'an agent',
);

export const configSchema = mapping(
  {
    floor: floor.nullish(),
    cap: size.nullish().meta({
      description: 'The most that models, agents and reserved jobs together may book on a device.',
      'x-default': '90%',
    }),
    idle: duration(1000, 30 * DAY_MS, 'a time from 1s to 30d')
      .nullish()
      .meta({
        description: 'A model this long after the end of its last request, with no slot processing, is idle.',
        'x-default': '180s',
      }),
    raceGrace: duration(0, 60_000, 'a time from 0s to 60s').nullish().meta({
      description: 'From asking the loser of a loading race to unload, to SIGKILL.',
      'x-default': '1s',
    }),
    guards: guardsMode.nullish().meta({
      description:
        'on: act. observe: say what would be done and do nothing. Default: on for backends named here, observe for those found.',
    }),
    maxBig: z
      .union([z.literal('fit'), wholeNumber(1, 64, 'a number of models')], {
        error: (issue) =>
          `${shown(issue.input)} is not understood; write fit, or a whole number from 1 to 64`,
      })
      .nullish()
      .meta({
        description: 'Big models loaded at a time; fit: as many as cap and floor hold.',
        'x-default': 'fit',
      }),
    race: oneOf(['class', 'resident', 'newcomer'])
      .nullish()
      .meta({ description: 'Who gives way in a loading race.', 'x-default': 'class' }),
    big: z
      .union([mapping({ atLeast: byteCount }, 'a rule for big models'), models], {
        error: (issue) =>
          `${shown(issue.input)} is not understood; write { atLeast: 2GB } or [qwen-27b, /vision/]`,
      })
      .nullish()
      .meta({ description: 'Which models are big: by size, or by name.', 'x-default': { atLeast: '2GB' } }),
    small: models.nullish().meta({ description: 'Models that may always stay; never counted as big.' }),
    batchOnly: models
      .nullish()
      .meta({ description: 'First to go, and away while a big model is loading or loaded.' }),
    ttl: recordOf(duration(1000, 365 * DAY_MS, 'a time from 1s to 365d'), '{ qwen-27b: 300s }')
      .nullish()
      .meta({ description: 'Unload a model after this long idle, room or no room.' }),
    pinned: models.nullish().meta({ description: 'Never evicted.' }),
    devices: listOf(device, '- { kind: nvidia }')
      .nullish()
      .meta({ description: 'The cards and the memory that are watched. Default: found by itself.' }),
    backends: listOf(backend, '- { name: router, kind: llama.cpp, url: "http://127.0.0.1:8080" }')
      .nullish()
      .meta({
        description:
          'The servers that are watched and guarded. Default: looked for on the usual loopback ports and observed.',
      }),
    footprints: recordOf(byteCount, '{ qwen-27b: 18.6GB }')
      .nullish()
      .meta({ description: 'What a model needs; wins over the estimate until it is measured.' }),
    fallbacks: listOf(fallback, '- { name: cloud, url: "https://…/v1" }').nullish().meta({
      description:
        'Where a request goes when it can not be served here. Nothing leaves the machine unless this is set.',
    }),
    agents: recordOf(agent, '{ writer: { class: interactive, onBusy: fallback } }').nullish().meta({
      description:
        'How agents are served, by the name they give: their class, and what happens while the lane is busy.',
    }),
    comfyui: z
      .union([z.literal('found'), listOf(url, '["http://127.0.0.1:8188"]')], {
        error: (issue) =>
          `${shown(issue.input)} is not understood; write found, or ["http://127.0.0.1:8188"]`,
      })
      .nullish()
      .meta({
        description:
          'Which ComfyUI is asked to free its memory before a model is evicted: those at these addresses, or found: each one on this machine. Not set: only when a person says so.',
      }),
    kernelLog: oneOf(['on', 'off']).nullish().meta({
      description:
        "Whether the kernel's log is followed for trouble of the graphics driver, where it may be read.",
      'x-default': 'on',
    }),
    orphans: oneOf(['ask', 'end']).nullish().meta({
      description:
        "Whether a model's process whose server is gone is ended without a question, once that is proven.",
      'x-default': 'ask',
    }),
    drain: mapping(
      {
        kill: oneOf(['ask', 'always']).nullish().meta({
          description: 'Whether the process of a model that does not leave is ended without a question.',
          'x-default': 'ask',
        }),
        restart: oneOf(['ask', 'always']).nullish().meta({
          description:
            'Whether the systemd service of a server that does not answer is started anew without a question.',
          'x-default': 'ask',
        }),
      },
      'what a drain may do',
    )
      .nullish()
      .meta({ description: 'What a drain does by itself once a server does not let go.' }),
    engine: mapping(
      {
        context: wholeNumber(256, 1_048_576, 'a number of tokens')
          .nullish()
          .meta({ description: 'Tokens of an agent that asks for no number.', 'x-default': 4096 }),
        hostMemory: size.nullish().meta({
          description: 'The most of main memory for contexts that wait for their turn.',
          'x-default': '12.5%',
        }),
        files: z
          .union([z.literal('off'), byteCount], { error: limitSentence })
          .nullish()
          .meta({
            description:
              'The most of the disk for contexts that main memory has no room for; off: their tokens are read again.',
            'x-default': '8GB',
          }),
        parallel: wholeNumber(1, 16, 'a number of agents')
          .nullish()
          .meta({ description: 'Agents that decode at once. Default: one on the CPU, four on a card.' }),
        turnTokens: wholeNumber(1, 65_536, 'a number of tokens')
          .nullish()
          .meta({ description: 'Generated in one turn while others wait.', 'x-default': 64 }),
      },
      'settings of the engine',
    )
      .nullish()
      .meta({ description: 'Agents of the embedded engine, which share it over the ledger socket.' }),
    parking: mapping(
      {
        limit: z
          .union([z.literal('off'), byteCount], { error: limitSentence })
          .nullish()
          .meta({
            description: 'Of all parked conversations together; off: none is parked.',
            'x-default': '16GB',
          }),
        keep: duration(60_000, 30 * DAY_MS, 'a time from 1min to 30d')
          .nullish()
          .meta({ description: 'How long one waits for its model.', 'x-default': '24h' }),
      },
      'a limit for parked conversations',
    )
      .nullish()
      .meta({
        description:
          'What a llama.cpp server had read is saved before its model is unloaded and brought back with its next load, where it runs with --slot-save-path.',
      }),
    server: mapping(
      {
        port: port.nullish().meta({ 'x-default': 7781, description: 'Takes effect with the next start.' }),
        apiKeyEnv: variableName.nullish().meta({
          description:
            'The environment variable that holds the key for /v1 and /metrics. Not set: they are open on loopback.',
        }),
        origins: listOf(pageOrigin, '["https://chat.example.com"]').nullish().meta({
          description: 'Web pages that may use /v1, by their origin. Default: none.',
        }),
      },
      'a server',
    )
      .nullish()
      .meta({ description: 'Where VRAM Landlord itself listens, on loopback only.' }),
  },
  'a configuration',
).meta({ title: 'VRAM Landlord configuration' });

/** What a config holds once sizes, durations, names and URLs are read. */
export type ParsedConfig = z.output<typeof configSchema>;
