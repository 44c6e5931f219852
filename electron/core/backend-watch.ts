import type { BackendSetting } from '../../shared/settings.ts';
import { backendDiscovery, type Discovery, USUAL_PORTS, withFound } from './backends/discovery/discovery.ts';
import { serverPorts } from './backends/discovery/listening-servers.ts';
import type { Clock } from './clock.ts';
import type { Sampler } from './devices/sampler.ts';
import { looksForServers, watchedBackends } from './engine/own-models.ts';

export interface BackendWatchParts {
  readonly clock: Clock;
  readonly sampler: () => Sampler;
  /** Where servers are looked for; undefined: on the usual ports, and where a process of such a program listens. */
  readonly ports: readonly number[] | undefined;
  /** null: the config names no backends. */
  readonly named: () => readonly BackendSetting[] | null;
  /** Watches these from now on, and no others. */
  readonly watch: (backends: readonly BackendSetting[]) => Promise<void>;
}

/** Which backends are watched: those that the config names, and where it names no server, those that are found. */
export class BackendWatch {
  readonly #parts: BackendWatchParts;
  readonly #discovery: Discovery;
  #found: readonly BackendSetting[] = [];

  constructor(parts: BackendWatchParts) {
    const { clock, ports, sampler } = parts;
    this.#parts = parts;
    const processPorts = async (): Promise<readonly number[]> => {
      const servers = await sampler().servers();
      return servers.ok ? serverPorts(servers.value) : [];
    };
    // Where it was told where to look, it looks nowhere else.
    this.#discovery = backendDiscovery({
      ports: ports ?? USUAL_PORTS,
      clock,
      ...(ports === undefined ? { processPorts } : {}),
    });
  }

  get list(): readonly BackendSetting[] {
    return watchedBackends(this.#parts.named(), this.#found);
  }

  watch(): Promise<void> {
    return this.#parts.watch(this.list);
  }

  async look(): Promise<void> {
    if (!looksForServers(this.#parts.named())) return;
    const now = await this.#discovery.look();
    this.#found = withFound(this.#found, now);
    await this.watch();
  }
}
