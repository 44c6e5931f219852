import type { BackendSetting } from '../../../shared/settings.ts';
import type { Backend, BackendChange, BackendSnapshot } from '../backends/backend.ts';

/** Makes the adapter for a setting; null: there is no adapter for that kind yet. */
export type BackendFactory = (setting: BackendSetting) => Backend | null;

interface Member {
  readonly setting: BackendSetting;
  readonly backend: Backend;
}

/**
 * The backends being watched: those of the config, or, where it names none, those found nearby.
 * A config that changes starts and stops only what differs.
 */
export class Fleet {
  readonly #members = new Map<string, Member>();
  readonly #make: BackendFactory;
  readonly #onChange: (change: BackendChange) => void;
  #unsupported: readonly BackendSetting[] = [];
  #settings: readonly BackendSetting[] = [];

  constructor(make: BackendFactory, onChange: (change: BackendChange) => void) {
    this.#make = make;
    this.#onChange = onChange;
  }

  /** Settings of kinds that have no adapter, for a notice. */
  unsupported(): readonly BackendSetting[] {
    return this.#unsupported;
  }

  /** Watches exactly these from now on. Returns when those that left have stopped. */
  async set(wanted: readonly BackendSetting[]): Promise<void> {
    const stopping: Promise<void>[] = [];
    for (const [name, member] of this.#members) {
      const next = wanted.find((setting) => setting.name === name);
      if (next !== undefined && sameSetting(next, member.setting)) continue;
      this.#members.delete(name);
      stopping.push(member.backend.stop());
    }
    const unsupported: BackendSetting[] = [];
    for (const setting of wanted) {
      const present = this.#members.get(setting.name);
      if (present !== undefined) continue;
      const backend = this.#make(setting);
      if (backend === null) {
        unsupported.push(setting);
        continue;
      }
      this.#members.set(setting.name, { setting, backend });
      backend.start(this.#onChange);
    }
    this.#unsupported = unsupported;
    this.#settings = [...this.#members.values()].map(({ setting }) => setting);
    await Promise.all(stopping);
  }

  get(name: string): Backend | null {
    return this.#members.get(name)?.backend ?? null;
  }

  setting(name: string): BackendSetting | null {
    return this.#members.get(name)?.setting ?? null;
  }

  /** Those of `list()`, without asking each backend what it sees: the same array until they change. */
  settings(): readonly BackendSetting[] {
    return this.#settings;
  }

  list(): readonly { readonly setting: BackendSetting; readonly snapshot: BackendSnapshot }[] {
    return [...this.#members.values()].map(({ setting, backend }) => ({
      setting,
      snapshot: backend.snapshot(),
    }));
  }

  names(): readonly string[] {
    return [...this.#members.keys()];
  }

  async stop(): Promise<void> {
    const members = [...this.#members.values()];
    this.#members.clear();
    this.#settings = [];
    await Promise.all(members.map(({ backend }) => backend.stop()));
  }
}

function sameSetting(a: BackendSetting, b: BackendSetting): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
