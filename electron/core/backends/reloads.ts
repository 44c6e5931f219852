import { formatDuration } from '../../../shared/format.ts';
import type { Clock } from '../clock.ts';
import type { Backend, BackendSnapshot } from './backend.ts';

/** So many loads of one model within so long, with different contexts, are clients that undo each other's. */
const LOADS = 3;
const WITHIN_MS = 10 * 60_000;

interface Load {
  readonly atMs: number;
  readonly contextTokens: number | null;
}

interface Seen {
  readonly isLoaded: boolean;
  readonly contextTokens: number | null;
  readonly loads: readonly Load[];
}

/**
 * A backend that says when one of its models is loaded again and again because its clients ask for
 * different contexts (Ollama's `num_ctx` above all): each of them pays a load for every call then.
 */
export function tellingReloads(backend: Backend, clock: Clock): Backend {
  const seen = new Map<string, Seen>();

  const snapshot = (): BackendSnapshot => {
    const now = backend.snapshot();
    const nowMs = clock.monotonicMs();
    const notes: string[] = [];
    for (const { name, status, contextTokens } of now.models) {
      const before = seen.get(name) ?? { isLoaded: false, contextTokens: null, loads: [] };
      const isLoaded = status === 'loaded';
      const isNew = isLoaded && (!before.isLoaded || before.contextTokens !== contextTokens);
      const loads = isNew ? [...before.loads, { atMs: nowMs, contextTokens }] : before.loads;
      const recent = loads.filter((load) => nowMs - load.atMs <= WITHIN_MS);
      seen.set(name, {
        isLoaded,
        contextTokens: isLoaded ? contextTokens : before.contextTokens,
        loads: recent,
      });
      const note = reloadNote(name, recent, nowMs);
      if (note !== null) notes.push(note);
    }
    return notes.length === 0 ? now : { ...now, notes: [...notes, ...now.notes] };
  };

  return { ...backend, snapshot };
}

/** null: nothing to say. */
export function reloadNote(name: string, loads: readonly Load[], nowMs: number): string | null {
  const contexts = [...new Set(loads.map((load) => load.contextTokens).filter((tokens) => tokens !== null))];
  const [first] = loads;
  if (loads.length < LOADS || contexts.length < 2 || first === undefined) return null;
  const sizes = contexts.sort((one, other) => one - other).join(' and ');
  return `${name} was loaded ${loads.length} times within ${formatDuration(nowMs - first.atMs)}, with contexts of ${sizes} tokens: its clients ask for different ones, and each pays a load for it. Give them all the same.`;
}
