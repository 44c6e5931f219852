import type { Clock } from '../../electron/core/clock.ts';
import { type HttpOptions, type HttpServer, startHttpServer } from '../../electron/core/http/server.ts';
import { createFakeRuntime, type FakeRuntime } from './fake-runtime.ts';

export const TOKEN = 'test-token-0123456789-0123456789-0123456789'.slice(0, 43);
export const BEARER = { authorization: `Bearer ${TOKEN}` };

/** A clock a test moves by hand. */
export function handClock(): Clock & { advance(ms: number): void } {
  let nowMs = 1_000;
  return {
    monotonicMs: () => nowMs,
    epochMs: () => Date.UTC(2026, 2, 4) + nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

/** The real server on a free port, over a fake runtime. */
export async function serveFake(
  options: Partial<HttpOptions> & { readonly runtime?: FakeRuntime } = {},
): Promise<{ readonly server: HttpServer; readonly runtime: FakeRuntime }> {
  const { runtime = createFakeRuntime(), ...rest } = options;
  const started = await startHttpServer({
    api: runtime,
    port: 0,
    token: TOKEN,
    apiKey: () => null,
    pageDir: null,
    version: '0.1.0',
    ...rest,
  });
  if (!started.ok) throw new Error(started.error.message);
  return { server: started.value, runtime };
}
