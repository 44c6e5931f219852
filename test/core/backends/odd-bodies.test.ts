import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  isInFlight,
  nextFlights,
  parseSwapMessage,
} from '../../../electron/core/backends/dialects/llama-swap-flights.ts';
import { dialectFor } from '../../../electron/core/backends/make-backend.ts';
import { parseModelsList } from '../../../electron/core/backends/models-list.ts';
import { parseRouterEvent } from '../../../electron/core/backends/router-events.ts';
import { parseProps } from '../../../electron/core/backends/server-props.ts';
import { NONE_TOLD, reduceTold } from '../../../electron/core/backends/told-state.ts';
import { systemClock } from '../../../electron/core/clock.ts';
import type { BackendKind } from '../../../shared/settings.ts';

/** Bodies made of the words that servers use, put together in any way: nothing in them may throw, or pass for a figure. */
const KINDS: readonly BackendKind[] = ['llama-swap', 'ollama', 'lmstudio', 'lemonade'];
const KEYS = [
  ...[
    'models',
    'data',
    'running',
    'all_models_loaded',
    'entries',
    'requests',
    'request',
    'operation',
    'type',
  ],
  ...['model', 'name', 'id', 'key', 'model_name', 'aliases', 'digest', 'state', 'status', 'value', 'loaded'],
  ...['args', 'preset', 'cmd', 'proxy', 'backend_url', 'failed', 'exit_code', 'pid', 'device', 'ttl'],
  ...['size', 'size_vram', 'size_bytes', 'context_length', 'ctx_size', 'n_ctx', 'meta', 'config', 'parallel'],
  ...['loaded_instances', 'recipe_options', 'expires_at', 'last_use', 'is_busy', 'is_streaming', 'version'],
  ...['role', 'build_info', 'default_generation_settings', 'is_sleeping', 'event', 'progress', 'stages'],
];
const WORDS = ['loaded', 'ready', 'not-loaded', 'snapshot', '--port', '5801', 'http://127.0.0.1:1/', ''];
const TIMES = ['2025-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '2318-01-01T00:00:00+02:00', 'soon'];
const leaf = fc.oneof(
  fc.constantFrom(...WORDS, ...TIMES, null, true, false, 0, -1, 1e300),
  fc.string(),
  fc.double(),
  fc.integer(),
);
const body = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('any'), { maxKeys: 8 }),
  ),
})).any;

it('no body of any shape is taken for more than it says', async () => {
  const property = fc.asyncProperty(body, async (value) => {
    const text = JSON.stringify(value);
    const json: unknown = JSON.parse(text);
    parseModelsList(json);
    parseProps(json);
    parseRouterEvent(text);
    const none = nextFlights(null, { operation: 'snapshot', entries: [] });
    isInFlight(nextFlights(none, parseSwapMessage(text)?.data ?? json), ['a'], ['a']);
    for (const kind of KINDS) {
      const dialect = dialectFor(kind, 'http://127.0.0.1:9', systemClock);
      if (dialect === null) throw new Error(kind);
      const answer = async () => ({ kind: 'answer' as const, status: 200, text, json });
      const http = {
        baseUrl: 'http://127.0.0.1:9',
        get: answer,
        post: answer,
        stream: async () => null,
        close() {},
      };
      const ask = { http, timeoutMs: 1, signal: new AbortController().signal };
      await dialect.identify(ask);
      const reading = await dialect.read(ask);
      if (!reading.ok) {
        expect(reading.message).not.toMatch(/undefined|NaN|\[object/);
        continue;
      }
      const list = { type: 'list' as const, models: reading.models, atMs: 1 };
      const { state } = reduceTold(reduceTold(NONE_TOLD, list, dialect).state, list, dialect);
      for (const { name, told } of state.values()) {
        expect(name).not.toBe('');
        const { contextTokens, reportedBytes, weightsBytes, port, ttlMs, expiresAtEpochMs } = told;
        for (const figure of [contextTokens, reportedBytes, weightsBytes, port, ttlMs, expiresAtEpochMs])
          expect(figure === null || (Number.isFinite(figure) && figure >= 0)).toBe(true);
      }
      dialect.notes(reading.models);
    }
  });
  await fc.assert(property, { numRuns: 1_000 });
});
