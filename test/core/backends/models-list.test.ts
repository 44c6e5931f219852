import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type ListedModel, parseModelsList } from '../../../electron/core/backends/models-list.ts';
import { parseRouterEvent } from '../../../electron/core/backends/router-events.ts';
import { parseProps } from '../../../electron/core/backends/server-props.ts';

function parse(body: unknown): readonly ListedModel[] {
  const parsed = parseModelsList(body);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

const ARGS = [
  '/bin/llama-server',
  '--port',
  '40123',
  '--alias',
  'qwen',
  '--ctx-size',
  '4096',
  '-m',
  '/m/q.gguf',
];

describe("a router's models list", () => {
  it('reads the preset of a model that has no command line yet', () => {
    const preset = '[qwen]\nmodel = /m/q.gguf\nctx-size = 16384\nLLAMA_ARG_CACHE_TYPE_K = q8_0\n';
    const models = parse({
      data: [
        { id: 'a', status: { value: 'unloaded', args: [], preset } },
        { id: 'b', status: { value: 'unloaded', args: ARGS, preset } },
        { id: 'c', status: { value: 'unloaded' } },
      ],
    });
    expect(models.map(({ args, modelPath, contextTokens }) => [args, modelPath, contextTokens])).toEqual([
      [
        ['llama-server', '--model', '/m/q.gguf', '--ctx-size', '16384', '--cache-type-k', 'q8_0'],
        '/m/q.gguf',
        16_384,
      ],
      [ARGS, '/m/q.gguf', 4096],
      [null, null, null],
    ]);
  });

  it('gives name, aliases, port, path, context and stop time-out', () => {
    const [model] = parse({
      data: [
        {
          id: 'qwen',
          aliases: ['qwen', 'q'],
          status: { value: 'loaded', args: [...ARGS, '--metrics'], preset: '[qwen]\nstop-timeout = 3\n' },
          meta: { n_ctx: 8192 },
        },
      ],
    });
    expect(model).toMatchObject({
      name: 'qwen',
      aliases: ['q'],
      status: 'loaded',
      port: 40_123,
      modelPath: '/m/q.gguf',
      contextTokens: 8192,
      stopTimeoutMs: 3_000,
      tellsMetrics: true,
    });
  });

  it('takes no port from a model that is not there: the list shows its last one, or 0', () => {
    const unloaded = { id: 'a', status: { value: 'unloaded', args: ARGS, failed: true, exit_code: 1 } };
    const starting = { id: 'b', status: { value: 'loading', args: ['x', '--port', '0'] } };
    expect(parse({ data: [unloaded, starting] }).map((model) => model.port)).toEqual([null, null]);
  });

  it.each([
    ['downloading', 'unloaded'],
    ['downloaded', 'unloaded'],
    ['sleeping', 'sleeping'],
    ['frozen', 'unknown'],
  ])('reads %s as %s', (word, expected) => {
    expect(parse({ data: [{ id: 'a', status: { value: word } }] })[0]?.status).toBe(expected);
  });

  it('is unknown, not idle or absent, where no status is told', () => {
    expect(parse({ data: [{ id: 'a' }] })[0]).toMatchObject({ status: 'unknown', stopTimeoutMs: null });
  });

  it('passes over entries without a name and repeated ones, and refuses what is no list', () => {
    expect(parse({ data: [null, 3, {}, { id: 'a' }, { id: 'a' }] })).toHaveLength(1);
    for (const body of [null, 'x', 4, {}, { data: {} }]) expect(parseModelsList(body).ok).toBe(false);
  });

  it('says 10 s where the preset does not, and unknown where there is no preset', () => {
    const entry = (preset?: string) => ({ id: 'a', status: { value: 'unloaded', preset } });
    expect(parse({ data: [entry('[a]\nmodel = x\n')] })[0]?.stopTimeoutMs).toBe(10_000);
    expect(parse({ data: [entry()] })[0]?.stopTimeoutMs).toBeNull();
  });
});

// Captured and documented bodies, where they lie beside the repository.
const evidence = fileURLToPath(new URL('../../../../shared/evidence/backend-json', import.meta.url));
const read = (name: string): string => readFileSync(`${evidence}/${name}`, 'utf8');

if (existsSync(`${evidence}/01-router-models-doc-states.txt`)) {
  describe('documented and captured router bodies', () => {
    it('reads every documented status object', () => {
      const lines = read('01-router-models-doc-states.txt').split('\n');
      const body = lines.find((line) => line.startsWith('{"data"')) ?? '';
      expect(parse(JSON.parse(body))[0]).toMatchObject({
        name: 'ggml-org/gemma-3-4b-it-GGUF:Q4_K_M',
        status: 'loaded',
        modelPath: '/home/user/.cache/llama.cpp/model.gguf',
        port: null,
      });
      const statuses = lines
        .filter((line) => line.startsWith('"status"'))
        .map((line) => parse([{ id: 'm', ...JSON.parse(`{${line}}`) }])[0]);
      expect(statuses.map((model) => [model?.status, model?.failed, model?.exitCode])).toEqual([
        ['unloaded', false, null],
        ['loading', false, null],
        ['unloaded', true, 1],
        ['sleeping', false, null],
        ['unloaded', false, null],
      ]);
    });

    it('reads a newer entry, started as `llama serve`', () => {
      const text = read('03-router-models-2026-aliases-tags.txt').split('\n').slice(1).join('\n');
      const whole = `${text.trimEnd().replace(/,$/, '')}]}}]}`;
      expect(parse(JSON.parse(whole))[0]).toMatchObject({
        name: 'ggml-org/gemma-4-26B-A4B-it-GGUF:Q4_0',
        aliases: [],
        status: 'unloaded',
        port: null,
      });
    });

    it('reads every documented event', () => {
      const events = read('05-router-sse-events.txt')
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map(parseRouterEvent);
      expect(events.map((event) => (event?.type === 'status' ? event.status : event?.type))).toEqual([
        'loading',
        'loaded',
        'sleeping',
        'removed',
        'reload',
      ]);
      expect(events[0]).toMatchObject({ progress: 0.5 / 3 });
    });

    it('reads the properties of a single server', () => {
      const line = read('07-props-doc-and-router-placeholder.txt')
        .split('\n')
        .find((text) => text.startsWith('{'));
      expect(parseProps(JSON.parse(line ?? ''))).toMatchObject({
        role: 'single',
        modelName: 'Meta-Llama-3.1-8B-Instruct-Q4_K_M',
        contextTokens: 1024,
        isSleeping: false,
        build: null,
      });
    });
  });
}
