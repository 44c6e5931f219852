import { describe, expect, it } from 'vitest';
import { defaults } from '../../../electron/core/settings/defaults.ts';
import { jsonSchemaText } from '../../../electron/core/settings/json-schema.ts';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';
import type { Settings } from '../../../shared/settings.ts';

/** Every key once, in the forms the documentation shows. */
const FULL = `
floor: { keep: 6GB, hard: 3GB, mode: share }
cap: 85%
idle: 90s
raceGrace: 500ms
guards: observe
maxBig: 2
race: newcomer
big: [qwen-27b, /vision/]
small: [pipeline-9b, router/bge-m3]
batchOnly: [bge-m3-batch]
ttl: { qwen-27b: 5m }
pinned: [bge-m3]
devices:
  - { kind: amdgpu, path: /sys/class/drm/card1/device, floor: 10% }
  - { kind: nvidia, smi: nvidia-smi }
  - { kind: system, floor: auto }
  - { kind: simulated, path: ~/card.json }
backends:
  - { name: router, kind: llama.cpp, url: "http://localhost:8080/v1/", lanes: 1, guards: on, device: "pci:0000:03:00.0" }
  - { name: big, kind: llama.cpp, url: "http://127.0.0.1:8081", front: 8082, lane: device, command: [llama-server, --port, "8081"] }
  - { name: embedded, kind: embedded, models: { smol: ~/models/smol.gguf } }
footprints: { qwen-27b: 18.6GB }
fallbacks:
  - { name: cloud, url: "https://api.example.com/v1/", apiKeyEnv: CLOUD_KEY, models: { "*": some-model } }
agents:
  writer: { class: interactive, onBusy: reject }
  indexer: { class: batch }
kernelLog: off
orphans: end
comfyui: ["http://localhost:8188"]
drain: { kill: always }
engine: { context: 8192, hostMemory: 10%, files: off, parallel: 2, turnTokens: 32 }
parking: { limit: 4GB, keep: 2h }
server: { port: 7000, apiKeyEnv: LANDLORD_KEY, origins: ["https://Chat.example"] }
`;

function good(text: string): Settings {
  const parsed = parseSettings(text, 'config.yaml', '/home/ada');
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

function bad(text: string): string {
  const parsed = parseSettings(text, 'config.yaml', '/home/ada');
  if (parsed.ok) throw new Error('it was accepted');
  expect(parsed.error.code).toBe('config_rejected');
  return parsed.error.message;
}

describe('parseSettings', () => {
  it('reads every key of the documented configuration', () => {
    const backend = { lanes: null, front: null, command: null, models: {}, device: null };
    const rest = { guards: null, apiKeyEnv: null, found: false };
    expect(good(FULL)).toEqual({
      floor: { keep: { bytes: 6e9 }, hard: { bytes: 3e9 }, mode: 'share' },
      cap: { share: 0.85 },
      idleMs: 90_000,
      raceGraceMs: 500,
      guards: 'observe',
      maxBig: 2,
      race: 'newcomer',
      big: { names: [{ exact: 'qwen-27b' }, { pattern: 'vision' }] },
      small: [{ exact: 'pipeline-9b' }, { exact: 'router/bge-m3' }],
      batchOnly: [{ exact: 'bge-m3-batch' }],
      ttlMs: { 'qwen-27b': 300_000 },
      pinned: [{ exact: 'bge-m3' }],
      devices: [
        {
          kind: 'amdgpu',
          path: '/sys/class/drm/card1/device',
          floor: { keep: { share: 0.1 }, hard: null, mode: 'free' },
        },
        { kind: 'nvidia', smi: 'nvidia-smi' },
        { kind: 'system', floor: { keep: 'auto', hard: null, mode: 'free' } },
        { kind: 'simulated', path: '/home/ada/card.json' },
      ],
      backends: [
        {
          ...backend,
          ...rest,
          name: 'router',
          kind: 'llama.cpp',
          url: 'http://localhost:8080',
          lanes: 1,
          guards: 'on',
          device: 'pci:0000:03:00.0',
        },
        {
          ...backend,
          ...rest,
          name: 'big',
          kind: 'llama.cpp',
          url: 'http://127.0.0.1:8081',
          front: 8082,
          lane: 'device',
          command: ['llama-server', '--port', '8081'],
        },
        {
          ...backend,
          ...rest,
          name: 'embedded',
          kind: 'embedded',
          url: null,
          models: { smol: '/home/ada/models/smol.gguf' },
        },
      ],
      footprints: { 'qwen-27b': 18.6e9 },
      fallbacks: [
        {
          name: 'cloud',
          url: 'https://api.example.com/v1',
          apiKeyEnv: 'CLOUD_KEY',
          models: { '*': 'some-model' },
        },
      ],
      agents: {
        writer: { class: 'interactive', onBusy: 'reject' },
        indexer: { class: 'batch', onBusy: 'wait' },
      },
      kernelLog: 'off',
      orphans: 'end',
      comfyui: ['http://localhost:8188'],
      drain: { kill: 'always', restart: 'ask' },
      engine: {
        contextTokens: 8192,
        hostMemory: { share: 0.1 },
        filesBytes: 0,
        parallel: 2,
        turnTokens: 32,
      },
      parking: { limitBytes: 4_000_000_000, keepMs: 7_200_000 },
      server: { port: 7000, apiKeyEnv: 'LANDLORD_KEY', origins: ['https://chat.example'] },
    });
  });

  it.each(['', '# nothing yet\n', '---\n', '{}', 'pinned:\nbackends:\nfloor:\n'])(
    'takes %j for the defaults: every key is optional, and one without a value counts as absent',
    (text) => {
      expect(good(text)).toEqual(defaults());
    },
  );

  it('takes what a card’s memory is, with a path or for every card of a kind', () => {
    const text =
      'devices: [{ kind: amdgpu, memory: unified }, { kind: amdgpu, path: /c, memory: discrete }, { kind: nvidia, memory: unified }, { kind: nvidia, memory: }]';
    expect(good(text).devices).toEqual([
      { kind: 'amdgpu', memory: 'unified' },
      { kind: 'amdgpu', path: '/c', memory: 'discrete' },
      { kind: 'nvidia', memory: 'unified' },
      { kind: 'nvidia' },
    ]);
    expect(jsonSchemaText()).toMatch(/"memory": \{[^}]*"unified"/);
  });

  it.each([
    ['floor: auto', { keep: 'auto', hard: null, mode: 'free' }],
    ['floor: 0', { keep: { bytes: 0 }, hard: null, mode: 'free' }],
    ['floor: { hard: 1GB }', { keep: null, hard: { bytes: 1e9 }, mode: 'free' }],
    ['floor: { keep: 20%, hard: 1GB }', { keep: { share: 0.2 }, hard: { bytes: 1e9 }, mode: 'free' }],
  ])('reads %j', (text, floor) => {
    expect(good(text).floor).toEqual(floor);
  });

  it.each([
    // A place, and what to write instead.
    ['cap: 90%\nidel: 3m\n', 'config.yaml:2:1: idel: ', 'did you mean idle?'],
    ['max_big: 1', 'config.yaml:1:1: max_big: ', 'did you mean maxBig?'],
    ['floor:\n  kep: 4GB', 'config.yaml:2:3: floor.kep: ', 'did you mean keep?'],
    ['cap: 90%\nfloor: 4GBB', 'config.yaml:2:8: floor: ', 'write an amount such as 4GB'],
    ['floor: [4GB]', 'config.yaml:1:8: floor: ', 'auto'],
    ['floor: { keep: 2GB, hard: 3GB }', 'config.yaml:1:27: floor.hard: ', 'write a smaller one'],
    ['floor: 100%', 'config.yaml:1:8: floor: ', 'leaves no room'],
    ['cap: 0%', 'config.yaml:1:6: cap: ', '90%'],
    ['idle: 180', 'config.yaml:1:7: idle: ', '180s'],
    ['raceGrace: 2h', 'config.yaml:1:12: raceGrace: ', '0s to 60s'],
    ['guards: yes', 'config.yaml:1:9: guards: ', 'write on or observe'],
    ['race: clas', 'config.yaml:1:7: race: ', 'did you mean class?'],
    ['maxBig: 0', 'config.yaml:1:9: maxBig: ', 'from 1 to 64'],
    ['maxBig: all', 'config.yaml:1:9: maxBig: ', 'write fit'],
    ['big: { atLest: 2GB }', 'config.yaml:1:8: big.atLest: ', 'did you mean atLeast?'],
    ['pinned: bge-m3', 'config.yaml:1:9: pinned: ', 'write [qwen-27b, /vision/]'],
    ['small: [7]', 'config.yaml:1:9: small[0]: ', 'in quotes'],
    ['small: ["/x(/"]', 'config.yaml:1:9: small[0]: ', 'not a regular expression'],
    ['small: [/x/i]', 'config.yaml:1:9: small[0]: ', 'second slash'],
    ['small: [/x]', 'config.yaml:1:9: small[0]: ', '"/x/"'],
    ['small: [//]', 'config.yaml:1:9: small[0]: ', 'every model'],
    ['ttl: { a: 3 }', 'config.yaml:1:11: ttl.a: ', '3s'],
    ['footprints: { a: 18% }', 'config.yaml:1:18: footprints.a: ', 'a share is not understood here'],
    ['devices: [{ kind: amd }]', 'config.yaml:1:19: devices[0].kind: ', 'amdgpu'],
    ['devices: [{ kind: simulated }]', 'config.yaml:1:11: devices[0].path: ', 'missing'],
    ['devices: [{ kind: amdgpu, memory: shared }]', 'config.yaml:1:35: devices[0].memory: ', 'unified'],
    [
      'devices: [{ kind: system, memory: unified }]',
      'config.yaml:1:27: devices[0].memory: ',
      'not a setting',
    ],
    ['devices: [{ kind: system, path: /x }]', 'config.yaml:1:27: devices[0].path: ', 'not a setting'],
    ['devices: [{ kind: simulated, path: x.json }]', 'config.yaml:1:36: devices[0].path: ', 'begins with /'],
    ['backends: [{ kind: ollama }]', 'config.yaml:1:12: backends[0].name: ', 'missing'],
    ['backends: [{ name: a, kind: olama }]', 'config.yaml:1:29: backends[0].kind: ', 'did you mean ollama?'],
    ['backends: [{ name: a/b, kind: ollama }]', 'config.yaml:1:20: backends[0].name: ', 'letters'],
    ['backends: [{ name: a, kind: ollama }]', 'config.yaml:1:12: backends[0]: ', 'has no url'],
    [
      'backends: [{ name: a, kind: ollama, url: "h:1" }]',
      'config.yaml:1:42: backends[0].url: ',
      'http://h:1',
    ],
    ['backends: [{ name: a, kind: ollama, url: "ftp://h" }]', ':42: backends[0].url: ', 'http://'],
    ['backends: [{ name: a, kind: ollama, url: "http://h/?a=1" }]', ':42: backends[0].url: ', 'leave out'],
    ['backends: [{ name: a, kind: embedded, url: "http://h" }]', ':44: backends[0].url: ', 'leave url out'],
    [
      'backends: [{ name: a, kind: ollama, url: "http://h", models: { a: /b } }]',
      'backends[0].models: ',
      'embedded',
    ],
    [
      'backends: [{ name: a, kind: ollama, url: "http://h:90", front: 90 }]',
      'backends[0].front: ',
      'own port 90',
    ],
    ['backends: [{ name: a, kind: ollama, url: "http://h", lanes: 0 }]', 'backends[0].lanes: ', '1 to 64'],
    [
      'backends: [{ name: a, kind: ollama, url: "http://h", command: [] }]',
      'backends[0].command: ',
      'in parts',
    ],
    ['backends: [{ name: a, kind: ollama, url: "http://[::1]:7781" }]', 'backends[0].url: ', 'server.port'],
    ['agents: { w: { clas: batch } }', 'config.yaml:1:16: agents.w.clas: ', 'did you mean class?'],
    ['server: { port: 70000 }', 'config.yaml:1:17: server.port: ', '1 to 65535'],
    ['server: { origins: ["*"] }', 'config.yaml:1:21: server.origins[0]: ', 'not the origin of a page'],
    ['server: 7781', 'config.yaml:1:9: server: ', 'keys and values'],
    ['- a', 'config.yaml:1:1: ', 'keys and values'],
    // Not YAML.
    ['floor: 1GB\nfloor: 2GB', 'config.yaml:2:1: ', 'twice'],
    ['floor:\n\tkeep: 3GB', 'config.yaml:2:1: ', 'tab'],
    ['floor: "4GB', 'config.yaml:1:12: ', 'quote'],
    ['pinned: *bge', 'config.yaml:1:9: ', 'quotes'],
    ['floor: 1GB\n---\ncap: 90%', 'config.yaml:2:1: ', 'second document'],
    ['floor: \0', 'config.yaml:1:1: ', 'not a text file'],
    ['#'.repeat(300_000), 'config.yaml:1:1: ', 'larger than 256 KiB'],
  ])('refuses %.60j with its place and what to write', (text, place, words) => {
    const message = bad(text);
    expect(message).toContain(place);
    expect(message).toContain(words);
  });

  it('tells two backends on one port apart by host, however the loopback is spelled', () => {
    const two = (a: string, b: string) =>
      `backends:\n  - { name: a, kind: ollama, url: "${a}" }\n  - { name: b, kind: ollama, url: "${b}" }\n`;
    expect(bad(two('http://localhost:90', 'http://127.0.0.1:90/v1'))).toContain(
      'config.yaml:3:35: backends[1].url: port 90 already belongs to backend a',
    );
    expect(good(two('http://192.0.2.1:90', 'http://192.0.2.2:90')).backends).toHaveLength(2);
    expect(bad(two('http://h:90', 'http://h:91').replace('name: b', 'name: a'))).toContain('is taken');
  });

  it('tells all problems at once, in the order of the lines, and counts what it leaves out', () => {
    const many = Array.from({ length: 8 }, (_, index) => `wrong${index}: 1`).join('\n');
    const lines = bad(many).split('\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toContain('config.yaml:1:1');
    expect(lines[4]).toContain('config.yaml:5:1');
    expect(lines[5]).toBe('and 3 more');
  });

  it.each([
    'apiKey: hunter2',
    'hunter2',
    '[hunter2]',
    'server: { apiKeyEnv: sk-hunter2 }',
    'fallbacks: "https://x/?key=hunter2"',
    'fallbacks: [hunter2]',
    'devices: [hunter2]',
    'agents: hunter2',
    'backends: [{ name: a, kind: ollama, url: "http://u:hunter2@h" }]',
    'backends: [{ name: a, kind: ollama, url: "hunter2" }]',
    'backends: [{ name: a, kind: ollama, url: "http://h", command: "llama-server --api-key hunter2" }]',
    'fallbacks: [{ name: a, url: "https://h?key=hunter2", apiKey: hunter2 }]',
    'server: { apiKeyEnv: *hunter2 }',
    'server: { apiKeyEnv: "hunter2 }',
    'server: { apiKeyEnv: @hunter2 }',
    'server: { apiKeyEnv: !hunter2 x }\n---\na: hunter2',
  ])('never repeats what may be a secret: %j', (text) => {
    expect(bad(text)).not.toContain('hunter2');
  });

  it('is not led astray by names every object has', () => {
    expect(good('ttl: { constructor: 3s, toString: 4s }').ttlMs).toEqual({
      constructor: 3000,
      toString: 4000,
    });
    expect(bad('constructor: 1')).toContain('constructor: is not a setting');
    expect(bad('__proto__: { floor: 1GB }')).toContain('not a setting');
  });

  it('follows aliases, and not a bomb of them', () => {
    expect(good('small: &names [a, b]\npinned: *names\n').pinned).toEqual([{ exact: 'a' }, { exact: 'b' }]);
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh', 'hi']) {
      bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(', ')}]`);
    }
    expect(bad(bomb.join('\n'))).toContain('aliases');
  });
});

describe('jsonSchemaText', () => {
  it('describes every key, refuses unknown ones and names the defaults', () => {
    const schema: { properties: Record<string, unknown>; additionalProperties: unknown } = JSON.parse(
      jsonSchemaText(),
    );
    const keys = FULL.split('\n').flatMap((line) => /^(\w+):/.exec(line)?.[1] ?? []);
    expect(Object.keys(schema.properties).sort()).toEqual(keys.sort());
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties.cap).toMatchObject({ default: '90%' });
    expect(JSON.stringify(schema.properties.floor)).toContain('512MiB');
  });
});
