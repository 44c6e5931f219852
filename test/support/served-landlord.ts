import type { ChildProcess } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventKind, LandlordEvent } from '../../shared/events.ts';
import type { LandlordState, ModelState } from '../../shared/state.ts';
import { openStream } from './http-request.ts';
import { type Ran, startLandlord } from './landlord.ts';
import { type BenchOptions, startCard } from './landlord-runtime.ts';
import { freePort } from './llama-server.ts';
import { until } from './router.ts';
import type { SimulatedCard } from './simulated-card.ts';

/** An event, and when it reached us by `performance.now()`. */
export interface SeenEvent {
  readonly event: LandlordEvent;
  readonly seenAtMs: number;
}

export interface ServedLandlord extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly stateDir: string;
  readonly card: SimulatedCard;
  readonly events: readonly SeenEvent[];
  state(): Promise<LandlordState>;
  /** Waits until a model is seen in a state. */
  model(id: string, holds: (model: ModelState) => boolean, what: string, limitMs?: number): Promise<void>;
  /** The first event of a kind at or after index `from` of `events`. */
  event(kind: EventKind, from: number, model?: string, limitMs?: number): Promise<SeenEvent>;
  /** SIGTERM, and how it ended. */
  end(): Promise<Ran>;
}

export interface ServeOptions extends BenchOptions {
  /** false: nobody listens to its events, as when no window is open. `window`: what an open page listens to; `events` stays empty. */
  readonly follow?: boolean | 'window';
}

/** `build/landlord serve` as a process of its own, over a simulated card held by real llama-servers. */
export async function serveLandlord(options: ServeOptions): Promise<ServedLandlord> {
  const { folder, configFile, card } = await startCard(options);
  const port = await freePort();
  const stateDir = join(folder, 'state');
  const running = startLandlord([
    'serve',
    '--config',
    configFile,
    '--state-dir',
    stateDir,
    '--port',
    String(port),
  ]);
  const { pid } = running.child;
  if (pid === undefined) throw new Error('landlord serve did not start');
  await until(() => running.out().includes('its page opens'), 20_000, 'landlord serve to be ready').catch(
    (late: unknown) => {
      running.child.kill('SIGKILL');
      throw new Error(`${String(late)}\n${running.err()}`);
    },
  );
  const token = (await readFile(join(stateDir, 'token'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${token}` };
  const events: SeenEvent[] = [];
  const isWindow = options.follow === 'window';
  const path = isWindow ? '/api/stream' : '/api/events';
  const stream = options.follow === false ? null : await openStream(port, path, headers);
  if (stream !== null)
    void stream.until(() => {
      if (isWindow) return false;
      for (const frame of stream.frames.slice(events.length))
        events.push({ event: JSON.parse(frame.data), seenAtMs: performance.now() });
      return false;
    });
  const state = async (): Promise<LandlordState> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/state`, { headers });
    return JSON.parse(await answer.text());
  };
  const end = async (): Promise<Ran> => {
    stream?.close();
    running.child.kill('SIGTERM');
    return running.ended;
  };
  return {
    child: running.child,
    pid,
    stateDir,
    card,
    events,
    state,
    model: (id, holds, what, limitMs = 30_000) =>
      until(
        async () => {
          const model = (await state()).models.find((one) => one.id === id);
          return model !== undefined && holds(model);
        },
        limitMs,
        `${id} to be ${what}`,
      ),
    async event(kind, from, model, limitMs = 30_000) {
      const look = (): SeenEvent | undefined =>
        events
          .slice(from)
          .find(({ event }) => event.kind === kind && (model === undefined || event.model === model));
      await until(() => look() !== undefined, limitMs, `the event ${kind} of ${model ?? 'any model'}`);
      const found = look();
      if (found === undefined) throw new Error(`no event ${kind}`);
      return found;
    },
    end,
    async [Symbol.asyncDispose]() {
      await end();
      card[Symbol.dispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
