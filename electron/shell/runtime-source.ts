/**
 * The runtime the app shows, whichever that is: its own, or the one of this user that runs already (a
 * service, `landlord serve`). Its interface stays one object while what is behind it changes.
 *
 *   start ──► own                          ends with the app
 *     └ one runs already ──► attached ──it ends──► lost ──found again──► attached
 *                                                   └──host()──► own
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fail, ok, type Result } from '../../shared/errors.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import type { LinkState } from '../../shared/ipc-schema.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { Runtime, RuntimeOptions } from '../core/runtime.ts';
import type { CommandDone } from '../core/runtime-api.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import type { AttachedRuntime, ShownRuntime } from './attached-runtime.ts';

export interface RuntimeSource {
  /** Whether it runs in this app and ends with it; may change. */
  readonly owned: boolean;
  /** While the link is lost: the last state there was, and every command is refused. */
  readonly api: ShownRuntime;
  link(): LinkState;
  onLink(listener: (link: LinkState) => void): () => void;
  /** Hosts one here, or takes one that has come up meanwhile. Done at once when there is one. */
  host(): Promise<Result<CommandDone>>;
  /** Where it listens, `http://127.0.0.1:7781`; null while the link is lost. */
  url(): string | null;
  /** An address that lets a browser in once. */
  openUrl(): Promise<Result<string>>;
  /** Ends the runtime if it is ours; else only stops watching it. */
  stop(): Promise<void>;
}

export type RuntimeChoice = Pick<RuntimeOptions, 'configPath' | 'stateDir' | 'port'>;
export type OwnRuntime = ShownRuntime & Pick<Runtime, 'url' | 'openUrl' | 'stop'>;

export interface SourceParts {
  startRuntime(choice: RuntimeChoice): Promise<Result<OwnRuntime>>;
  findRuntime(choice: RuntimeChoice): Promise<Result<FoundRuntime>>;
  attach(runtime: FoundRuntime): Promise<Result<AttachedRuntime>>;
  askToOpen(runtime: FoundRuntime): Promise<Result<string>>;
}

type Behind =
  | { readonly kind: 'own'; readonly runtime: OwnRuntime }
  | { readonly kind: 'attached'; readonly runtime: AttachedRuntime }
  | { readonly kind: 'lost'; readonly runtime: ShownRuntime };

/** A service that is restarted is back within seconds; the first try comes at once. */
const RETRY_MS = 2000;
/** How long one that has ended may take to be gone: the driver takes its memory back first. */
const GONE_WITHIN_MS = 10_000;

/** Starts one, or takes the one that is there. */
export async function connectRuntime(
  parts: SourceParts,
  choice: RuntimeChoice,
  retryMs: number = RETRY_MS,
): Promise<Result<RuntimeSource>> {
  const first = await startOrAttach(parts, choice);
  return first.ok ? ok(createSource(parts, choice, first.value, retryMs)) : first;
}

async function startOrAttach(parts: SourceParts, choice: RuntimeChoice): Promise<Result<Behind>> {
  const started = await parts.startRuntime(choice);
  if (started.ok) return ok({ kind: 'own', runtime: started.value });
  if (started.error.code !== 'already_running') return started;
  const found = await parts.findRuntime(choice);
  // The port may be another program's: then what the start said is what helps.
  if (!found.ok) return started;
  const attached = await parts.attach(found.value);
  return attached.ok ? ok({ kind: 'attached', runtime: attached.value }) : attached;
}

function createSource(
  parts: SourceParts,
  choice: RuntimeChoice,
  first: Behind,
  retryMs: number,
): RuntimeSource {
  const stateListeners = new Set<(state: LandlordState) => void>();
  const eventListeners = new Set<(event: LandlordEvent) => void>();
  const linkListeners = new Set<(link: LinkState) => void>();
  let behind = first;
  let link = linkOf(first);
  let undo: readonly (() => void)[] = [];
  let retry: NodeJS.Timeout | undefined;
  let hosting: Promise<Result<CommandDone>> | null = null;
  let stopped = false;

  const show = (next: Behind): void => {
    for (const end of undo) end();
    clearTimeout(retry);
    const changed = next !== behind;
    behind = next;
    link = linkOf(next);
    undo =
      next.kind === 'lost'
        ? []
        : [
            next.runtime.onState((state) => tell(stateListeners, state)),
            next.runtime.onEvent((event) => tell(eventListeners, event)),
          ];
    if (next.kind === 'attached') next.runtime.onEnd(() => lose(next.runtime));
    if (!changed) return;
    tell(linkListeners, link);
    if (next.kind !== 'lost') tell(stateListeners, next.runtime.state());
  };
  const lose = (runtime: AttachedRuntime): void => {
    if (stopped || behind.runtime !== runtime) return;
    show({ kind: 'lost', runtime });
    void lookAgain();
  };
  const lookAgain = async (): Promise<void> => {
    const found = await parts.findRuntime(choice);
    const attached = found.ok && behind.kind === 'lost' && !stopped ? await parts.attach(found.value) : null;
    if (attached?.ok === true) {
      if (behind.kind === 'lost' && !stopped) show({ kind: 'attached', runtime: attached.value });
      else attached.value.close();
      return;
    }
    if (behind.kind !== 'lost' || stopped) return;
    retry = setTimeout(() => void lookAgain(), retryMs);
    retry.unref();
  };
  const host = async (): Promise<Result<CommandDone>> => {
    const isLost = (): boolean => behind.kind === 'lost' && !stopped;
    const untilMs = performance.now() + GONE_WITHIN_MS;
    let next = await startOrAttach(parts, choice);
    // A process that was killed answers no more some time before it lets go of its lock.
    while (!next.ok && next.error.code === 'already_running' && isLost() && performance.now() < untilMs) {
      await delay(Math.min(retryMs, GONE_WITHIN_MS));
      next = await startOrAttach(parts, choice);
    }
    if (!next.ok) return isLost() || stopped ? next : ok({ message: link.message });
    if (stopped || behind.kind !== 'lost') {
      await end(next.value);
      return stopped ? fail('cancelled', 'The app is ending.') : ok({ message: link.message });
    }
    show(next.value);
    return ok({ message: link.message });
  };
  show(first);

  return {
    get owned() {
      return behind.kind === 'own';
    },
    api: {
      state: () => behind.runtime.state(),
      onState: (listener) => subscribe(stateListeners, listener),
      onEvent: (listener) => subscribe(eventListeners, listener),
      events: (query) => (behind.kind === 'lost' ? refuse() : behind.runtime.events(query)),
      ask: (name, args) => (behind.kind === 'lost' ? refuse() : behind.runtime.ask(name, args)),
      command: (command, signal) =>
        behind.kind === 'lost' ? refuse() : behind.runtime.command(command, signal),
    },
    link: () => link,
    onLink: (listener) => subscribe(linkListeners, listener),
    async host() {
      if (behind.kind !== 'lost') return ok({ message: link.message });
      hosting ??= host().finally(() => {
        hosting = null;
      });
      return hosting;
    },
    url: () => (behind.kind === 'lost' ? null : behind.runtime.url),
    async openUrl() {
      if (behind.kind === 'own') return ok(behind.runtime.openUrl);
      // Looked for anew each time: a runtime that was restarted has another address and another token.
      const now = await parts.findRuntime(choice);
      return now.ok ? parts.askToOpen(now.value) : now;
    },
    async stop() {
      stopped = true;
      clearTimeout(retry);
      for (const one of undo) one();
      await end(behind);
    },
  };
}

function refuse(): Promise<Result<never>> {
  return Promise.resolve(
    fail(
      'no_runtime',
      'The runtime this app was showing has ended. Start it again, or host one in this app.',
    ),
  );
}

function linkOf(behind: Behind): LinkState {
  switch (behind.kind) {
    case 'own':
      return { kind: 'own', message: `VRAM Landlord runs in this app, at ${behind.runtime.url}.` };
    case 'attached':
      return {
        kind: 'attached',
        message: `This app shows the VRAM Landlord that runs at ${behind.runtime.url}; it goes on when the app is closed.`,
      };
    case 'lost':
      return {
        kind: 'lost',
        message:
          'The VRAM Landlord that this app was showing has ended: nothing guards the memory now. Host one in this app, or start it again.',
      };
  }
}

async function end(behind: Behind): Promise<void> {
  if (behind.kind === 'own') await behind.runtime.stop();
  else if (behind.kind === 'attached') behind.runtime.close();
}

function subscribe<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function tell<T>(listeners: ReadonlySet<(value: T) => void>, value: T): void {
  for (const listener of listeners) listener(value);
}
