/** The runtime through the desktop app: the preload's calls and pushes, to the same ends as HTTP. */
import type { Result } from '../shared/errors.ts';
import type { Bridge } from '../shared/ipc-bridge.ts';
import type { Done } from '../shared/ipc-schema.ts';
import { type Api, type Outcome, PAUSE_MS } from './api.ts';
import type { ReplicaWorld } from './store.ts';
import { strings } from './strings.ts';

/** The preload's API, where the page runs in the desktop app. */
export function bridgeOf(page: object): Bridge | null {
  const found: unknown = Reflect.get(page, 'landlord');
  return isBridge(found) ? found : null;
}

/** It is our own preload's, from the same build: that it is there is proof enough of its shape. */
function isBridge(value: unknown): value is Bridge {
  return typeof value === 'object' && value !== null && 'call' in value && 'on' in value;
}

export function createIpcApi({ call }: Bridge): Api & { host(): Promise<Outcome> } {
  return {
    load: (model, force) => outcomeOf(call.load({ model, force })),
    unload: (model, force) => outcomeOf(call.unload({ model, force })),
    pin: (model, pinned) => outcomeOf(pinned ? call.pin({ model }) : call.unpin({ model })),
    sleep: () => outcomeOf(call.sleep({ forMs: null })),
    wake: () => outcomeOf(call.wake({})),
    restore: () => outcomeOf(call.restore({})),
    accept: (offer) => outcomeOf(call.accept({ offer })),
    guards: (mode, backend) =>
      outcomeOf(call.guards({ mode, backend, forMs: mode === 'pause' ? PAUSE_MS : null })),
    host: () => outcomeOf(call.host({})),
  };
}

async function outcomeOf(asked: Promise<Result<Done>>): Promise<Outcome> {
  try {
    const result = await asked;
    if (result.ok) return { ok: true, message: result.value.message };
    const { code, message, numbers = {} } = result.error;
    return { ok: false, code, message, numbers };
  } catch {
    return { ok: false, code: 'unreachable', message: strings.noAnswer, numbers: {} };
  }
}

/** The app's side of the replica: a stream is a watch, and it breaks when the app loses its runtime. */
export function createIpcWorld(bridge: Bridge, browser: Pick<ReplicaWorld, 'now' | 'after'>): ReplicaWorld {
  const { call, on } = bridge;
  return {
    ...browser,
    openStream(handlers) {
      const undo = [
        on.state((json) => handlers.onState(json)),
        on.event((json) => handlers.onEvent(json)),
        on.link((json) => {
          if (isLost(json)) handlers.onBroken();
        }),
      ];
      let open = true;
      call.watch({}).then(
        (watching) => {
          if (open && !watching.ok) handlers.onBroken();
        },
        () => {
          if (open) handlers.onBroken();
        },
      );
      return {
        close: () => {
          open = false;
          for (const end of undo) end();
        },
      };
    },
    async fetchEvents(limit) {
      try {
        const events = await call.events({ afterId: null, limit });
        if (events.ok) return events.value;
        return events.error.code === 'not_permitted' ? 'refused' : 'unreachable';
      } catch {
        return 'unreachable';
      }
    },
  };
}

/** Tells when there is a runtime again, for whoever waits to try anew. */
export function onRuntimeBack({ on }: Bridge, run: () => void): () => void {
  return on.link((json) => {
    if (!isLost(json)) run();
  });
}

function isLost(json: string): boolean {
  try {
    const link: unknown = JSON.parse(json);
    return typeof link === 'object' && link !== null && 'kind' in link && link.kind === 'lost';
  } catch {
    return false;
  }
}
