import { describe, expect, it } from 'vitest';
import { evidenceFiles, readEvidence } from '../../support/evidence.ts';
import { until } from '../../support/router.ts';
import { SUBJECTS, watch } from './subjects.ts';

/** Bodies of running servers, beside the repository: each line that is JSON with the list its server has. */
const SOURCES: readonly {
  readonly name: RegExp;
  readonly title: string;
  readonly list: string;
  readonly id: string;
}[] = [
  { name: /ollama-ps/, title: 'Ollama', list: 'models', id: 'name' },
  { name: /lmstudio-v1/, title: 'LM Studio', list: 'models', id: 'key' },
  { name: /lmstudio-v0/, title: 'LM Studio before 0.4', list: 'data', id: 'id' },
  { name: /llama-swap-running/, title: 'llama-swap', list: 'running', id: 'model' },
  { name: /lemonade-health/, title: 'Lemonade', list: 'all_models_loaded', id: 'model_name' },
];

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;

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
        Array.isArray(entries) ? entries.map((entry) => String(member(entry, source.id))) : [],
      );
      await using it = await watch(subject, {
        before: (server) => {
          server.instead = (asked) =>
            asked.path === subject.list
              ? { body }
              : asked.path === '/api/version'
                ? { body: { version: '0.9' } }
                : subject.notFound;
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
        if (typeof told.expires === 'string') {
          const isPast = Date.parse(told.expires) < Date.now();
          expect(model.status).toBe(isPast ? 'stopping' : 'loaded');
        }
        const size = member(entry, 'size');
        if (typeof size === 'number') expect(model.reportedBytes ?? 0).toBeLessThanOrEqual(size);
      }
    });
  });
}
