import type { GuardWorld } from '../guards/world.ts';

type Order = 'drain' | 'drain and kill' | GuardWorld['wantedFree'][number];

/** What people have ordered and still wait for. Each order stands until whoever gave it disposes of it. */
export class Orders {
  readonly #standing = new Set<{ readonly order: Order }>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** So much free memory on a device. */
  wantFree(deviceId: string, freeBytes: number): Disposable {
    return this.#stand({ deviceId, freeBytes });
  }

  /** Everything is to leave, pinned or not; `mayKill`: what does not may be ended. */
  drain(mayKill = false): Disposable {
    return this.#stand(mayKill ? 'drain and kill' : 'drain');
  }

  get none(): boolean {
    return this.#standing.size === 0;
  }

  get draining(): boolean {
    return [...this.#standing].some(({ order }) => typeof order === 'string');
  }

  get mayKill(): boolean {
    return [...this.#standing].some(({ order }) => order === 'drain and kill');
  }

  get wantedFree(): GuardWorld['wantedFree'] {
    return [...this.#standing].flatMap(({ order }) => (typeof order === 'string' ? [] : [order]));
  }

  #stand(order: Order): Disposable {
    const entry = { order };
    this.#standing.add(entry);
    this.#changed();
    return {
      [Symbol.dispose]: () => {
        if (this.#standing.delete(entry)) this.#changed();
      },
    };
  }
}
