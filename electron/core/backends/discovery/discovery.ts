import type { BackendKind, BackendSetting } from '../../../../shared/settings.ts';
import type { Clock } from '../../clock.ts';
import { type ProvenKind, proveKind } from './prove-kind.ts';

/** Where servers usually listen: llama.cpp and llama-swap, and common guides; Ollama; LM Studio; Lemonade. */
export const USUAL_PORTS: readonly number[] = [8080, 8081, 8000, 8033, 11_434, 1234, 13_305];

/** A port that answers as none of those we know is asked again after this long at first, and at most. */
const FIRST_AGAIN_MS = 60_000;
const LAST_AGAIN_MS = 15 * 60_000;

export interface Discovery {
  /** Those that answer now; each is offered and watched, not taken. */
  look(): Promise<readonly BackendSetting[]>;
}

/**
 * Looks for inference servers on the usual loopback ports, and on those where a process of such a program
 * listens. A program of another kind is asked less and less: its log is not ours to fill.
 */
export function backendDiscovery(options: {
  readonly ports: readonly number[];
  /** By process; left out: only the usual ports. */
  readonly processPorts?: () => Promise<readonly number[]>;
  readonly clock: Clock;
  readonly timeoutMs?: number;
}): Discovery {
  const { clock, timeoutMs = 1_500 } = options;
  const others = new Map<number, { readonly againAtMs: number; readonly waitMs: number }>();

  const probe = async (port: number): Promise<BackendSetting | null> => {
    const other = others.get(port);
    if (other !== undefined && clock.monotonicMs() < other.againAtMs) return null;
    const url = `http://127.0.0.1:${port}`;
    const found = await proveKind(url, clock, timeoutMs);
    if (found.type !== 'other') others.delete(port);
    if (found.type === 'other') {
      const waitMs = Math.min(LAST_AGAIN_MS, (other?.waitMs ?? FIRST_AGAIN_MS / 2) * 2);
      others.set(port, { againAtMs: clock.monotonicMs() + waitMs, waitMs });
    }
    return found.type === 'server' ? foundSetting(found.proven, port, url) : null;
  };

  return {
    async look() {
      const byProcess = (await options.processPorts?.().catch(() => [])) ?? [];
      const ports = [...new Set([...options.ports, ...byProcess])];
      const found = await Promise.all(ports.map(probe));
      return found.filter((setting) => setting !== null);
    },
  };
}

/** One that went away stays watched, as down: it is most likely being restarted. Another kind at its port takes its place. */
export function withFound(
  known: readonly BackendSetting[],
  now: readonly BackendSetting[],
): readonly BackendSetting[] {
  const isReplaced = (one: BackendSetting): boolean =>
    now.some((other) => other.url === one.url && other.name !== one.name);
  const stays = known.filter((one) => !isReplaced(one));
  return [...stays, ...now.filter((one) => !stays.some((other) => other.url === one.url))];
}

const NAMES: Readonly<Partial<Record<BackendKind, string>>> = {
  'llama-swap': 'llama-swap',
  ollama: 'ollama',
  lmstudio: 'lmstudio',
  lemonade: 'lemonade',
};

function foundSetting(proven: ProvenKind, port: number, url: string): BackendSetting {
  const name = NAMES[proven.kind] ?? (proven.isRouter ? 'router' : 'llama');
  return {
    name: `${name}-${port}`,
    kind: proven.kind,
    url,
    lanes: null,
    front: null,
    command: null,
    models: {},
    device: null,
    guards: null,
    apiKeyEnv: null,
    found: true,
  };
}
