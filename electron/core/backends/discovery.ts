import type { BackendSetting } from '../../../shared/settings.ts';
import { httpClient } from './http.ts';
import { parseProps } from './server-props.ts';

/** Where llama.cpp servers usually listen: its own default first, then those of common guides. */
export const USUAL_PORTS: readonly number[] = [8080, 8081, 8000, 8033];

/**
 * Looks for inference servers on the usual loopback ports. A server is known by what it answers to
 * `GET /props`, never by its port; that call loads and wakes nothing (llama.cpp exempts it).
 * What is found is offered and watched, not taken.
 */
export async function discoverBackends(
  ports: readonly number[],
  ownPorts: ReadonlySet<number>,
  timeoutMs = 1_500,
): Promise<readonly BackendSetting[]> {
  const found = await Promise.all(
    ports.filter((port) => !ownPorts.has(port)).map((port) => probe(port, timeoutMs)),
  );
  return found.filter((setting) => setting !== null);
}

async function probe(port: number, timeoutMs: number): Promise<BackendSetting | null> {
  const url = `http://127.0.0.1:${port}`;
  const http = httpClient(url, null);
  try {
    const answer = await http.get('/props', { timeoutMs, maxBytes: 1 << 20 });
    if (answer.kind !== 'answer' || answer.status !== 200) return null;
    const props = parseProps(answer.json);
    if (props === null) return null;
    return {
      name: `${props.role === 'router' ? 'router' : 'llama'}-${port}`,
      kind: 'llama.cpp',
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
  } finally {
    http.close();
  }
}
