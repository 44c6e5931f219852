import { describe, expect, it } from 'vitest';
import { evidenceFiles, readEvidence } from '../../support/evidence.ts';
import { until } from '../../support/router.ts';
import type { Reply } from './servers/server.ts';
import { SUBJECTS, watch } from './subjects.ts';

/** Bodies of running servers, beside the repository: each line that is JSON with the list its server has. */
const SOURCES: readonly {
  readonly name: RegExp;
  readonly title: string;
  readonly list: string;
  readonly id: string;
}[] = [
  { name: /router-models/, title: 'llama.cpp router', list: 'data', id: 'id' },
  { name: /ollama-ps/, title: 'Ollama', list: 'models', id: 'name' },
  { name: /lmstudio-v1/, title: 'LM Studio', list: 'models', id: 'key' },
  { name: /lmstudio-v0/, title: 'LM Studio before 0.4', list: 'data', id: 'id' },
  { name: /llama-swap-running/, title: 'llama-swap', list: 'running', id: 'model' },
  { name: /lemonade-health/, title: 'Lemonade', list: 'all_models_loaded', id: 'model_name' },
];

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;

const INTRODUCTIONS: Readonly<Record<string, Reply>> = {
  '/api/version': { body: { version: '0.9' } },
  '/props': { body: { role: 'router', build_info: 'b11669-test' } },
  '/models/sse': 'stream',
};

/** A file on disk or on its way there holds no memory; a word nobody knows may. */
const ROUTER_STATES: Readonly<Record<string, string>> = {
  unloaded: 'unloaded',
  downloading: 'unloaded',
  downloaded: 'unloaded',
  loading: 'loading',
  loaded: 'loaded',
  sleeping: 'sleeping',
};

function bodiesIn(text: string, list: string): readonly unknown[] {
  const lines = text.split('\n').slice(1);
  return [lines.join('\n'), ...lines].flatMap((line) => {
    try {
      const body: unknown = JSON.parse(line);
      return Array.isArray(member(body, list)) ? [body] : [];
    } catch {
      return [];
    }
  });
}

for (const source of SOURCES) {
  const subject = SUBJECTS.find((one) => one.title === source.title);
  const files = evidenceFiles('backend-json').filter((file) => source.name.test(file));
  const bodies = files.flatMap((file) =>
    bodiesIn(readEvidence('backend-json', file), source.list).map((body, index) => ({
      title: `${file} (${index})`,
      body,
    })),
  );
  if (subject === undefined || bodies.length === 0) continue;
  describe(`real bodies of ${source.title}`, () => {
    it.each(bodies)('$title', async ({ body }) => {
      const entries = member(body, source.list);
      const names = new Set(
        Array.isArray(entries)
          ? entries
              // What runs on somebody else's machine holds nothing here.
              .filter((entry) => member(entry, 'remote_host') === undefined)
              .filter((entry) => member(entry, 'recipe') !== 'cloud')
              .map((entry) => String(member(entry, source.id)))
          : [],
      );
      await using it = await watch(subject, {
        before: (server) => {
          server.instead = (asked) =>
            asked.path === subject.list ? { body } : (INTRODUCTIONS[asked.path] ?? subject.notFound);
        },
      });
      await until(() => it.backend.snapshot().status === 'up', 5_000, 'the body to be taken');
      const models = it.backend.snapshot().models;
      expect(new Set(models.map((model) => model.name))).toEqual(names);
      for (const model of models) {
        const entry = Array.isArray(entries)
          ? entries.find((one) => member(one, source.id) === model.name)
          : null;
        const told = { state: member(entry, 'state'), expires: member(entry, 'expires_at') };
        // Membership is no residency, and a time that has passed is no residency for long.
        if (told.state === 'stopped' || told.state === 'not-loaded') expect(model.status).toBe('unloaded');
        if (told.state === 'ready' || told.state === 'loaded') expect(model.status).toBe('loaded');
        if (told.state === 'starting') expect(model.status).toBe('loading');
        const word = member(member(entry, 'status'), 'value');
        if (typeof word === 'string') expect(model.status).toBe(ROUTER_STATES[word] ?? 'loaded');
        if (typeof told.expires === 'string') {
          const expiresAtMs = Date.parse(told.expires);
          // The year 1 is Go's word for none.
          const isPast = expiresAtMs > 0 && expiresAtMs < Date.now();
          expect(model.status).toBe(isPast ? 'stopping' : 'loaded');
        }
        const size = member(entry, 'size');
        if (typeof size === 'number') expect(model.reportedBytes ?? 0).toBeLessThanOrEqual(size);
      }
    });
  });
}
