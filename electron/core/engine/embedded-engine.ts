import { randomBytes } from 'node:crypto';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { Backend } from '../backends/backend.ts';
import { EmbeddedBackend } from '../backends/embedded.ts';
import type { Clock } from '../clock.ts';
import { ChildEngineHost, type EngineHostOptions } from './child-host.ts';
import { engineWithLog } from './engine-log.ts';
import type { EngineServer } from './openai/server.ts';

/** The variable that stands for the engine's key among the settings, which name variables and hold no keys. */
const KEY_NAME = 'VRAM_LANDLORD_ENGINE_KEY';

/** The one engine of a runtime: its process, and the backends of the config that are made of it. */
export class EmbeddedEngine {
  readonly host: ChildEngineHost;
  readonly #clock: Clock;
  readonly #key = randomBytes(24).toString('base64url');
  #server: Promise<EngineServer> | null = null;
  readonly #backends = new Map<string, EmbeddedBackend>();

  constructor(clock: Clock, logFolder: string, options: EngineHostOptions = {}) {
    this.#clock = clock;
    this.host = new ChildEngineHost({ clock, startProcess: engineWithLog(logFolder), ...options });
  }

  /** Settings as the rest of the runtime takes them: embedded backends have an address of ours, and its key. */
  withUrls(settings: readonly BackendSetting[]): Promise<readonly BackendSetting[]> {
    return Promise.all(
      settings.map(async (setting) =>
        setting.kind === 'embedded'
          ? { ...setting, url: await (await this.#serving()).urlOf(setting.name), apiKeyEnv: KEY_NAME }
          : setting,
      ),
    );
  }

  /** The environment with the engine's key in it. */
  withKey(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string | undefined>> {
    return { ...env, [KEY_NAME]: this.#key };
  }

  /** The backend of a setting that `withUrls` has been at; null: of another kind. */
  backend(setting: BackendSetting): Backend | null {
    if (setting.kind !== 'embedded' || setting.url === null) return null;
    const { name, url, models } = setting;
    const before = this.#backends.get(name) ?? null;
    const made = new EmbeddedBackend({
      name,
      url,
      models,
      engine: this.host,
      clock: this.#clock,
      before,
      all: () => this.#backends.values(),
    });
    this.#backends.set(name, made);
    return made;
  }

  /** Whether this very file is loaded as a model that the gateway serves: agents that use it share its weights. */
  serves(path: string): boolean {
    return [...this.#backends.values()].some((backend) => backend.holds(path));
  }

  async stop(): Promise<void> {
    if (this.#server !== null) await (await this.#server).stop();
    await this.host.stop();
  }

  /** Loaded with the first embedded backend: what reads its requests takes 10 MB that no other runtime needs. */
  #serving(): Promise<EngineServer> {
    this.#server ??= import('./openai/server.ts').then(
      ({ EngineServer }) =>
        new EngineServer({
          engine: this.host,
          find: (backend) => this.#backends.get(backend) ?? null,
          epochMs: this.#clock.epochMs,
          key: this.#key,
        }),
    );
    return this.#server;
  }
}
