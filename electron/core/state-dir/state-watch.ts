import { type LandlordError, messageOf } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { replaceFile } from './atomic-file.ts';
import { ensureStateDir } from './ensure-state-dir.ts';
import type { LandlordPaths } from './paths.ts';
import { acquireRuntimeLock, type RuntimeLock, type RuntimeSelf } from './runtime-lock.ts';

export interface StateWatchOptions {
  readonly paths: Pick<LandlordPaths, 'stateDir' | 'lockFile' | 'runtimeFile' | 'tokenFile'>;
  readonly uid: number | null;
  readonly self: RuntimeSelf;
  readonly token: string;
  readonly url: string;
  readonly tell: (event: NewEvent) => void;
  /** The folder is there again: what else lies in it is to be made anew. */
  readonly restored: () => Promise<void>;
}

const LOOK_EVERY_MS = 5_000;

/**
 * Looks whether the state folder is still the one of this runtime. One that was deleted or replaced leaves a
 * runtime that no command finds, and beside which a second one may start and guard the same models: so the
 * folder, lock, token and record are made anew, and told. The log in it does so by itself (sqlite-store.ts).
 */
export class StateWatch {
  readonly #options: StateWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #lock: RuntimeLock;
  #looking: Promise<void> | null = null;
  /** A new folder that lacks something is gone on with at the next look. */
  #isWhole = true;
  /** A trouble is told once, by its code: its sentence may name a file that is made anew with each try. */
  #trouble: LandlordError['code'] | null = null;

  constructor(lock: RuntimeLock, options: StateWatchOptions) {
    this.#lock = lock;
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error) =>
        this.#failed({
          code: 'storage_failed',
          message: `It could not be made anew (${messageOf(error)}): make room or make it writable; it is tried again.`,
        }),
      )
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  /** Looks no more; resolves when nothing is being made anew. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Gives the lock back: another runtime may start. */
  release(): Promise<void> {
    return this.#lock.release();
  }

  async #look(): Promise<void> {
    const { paths, uid, self, token, url, restored } = this.#options;
    if (!(await this.#lock.isThere())) {
      const folder = await ensureStateDir(paths.stateDir, uid);
      if (!folder.ok) return this.#failed(folder.error);
      const lock = await acquireRuntimeLock(paths, self);
      if (!lock.ok) return this.#failed(lock.error);
      const old = this.#lock;
      this.#lock = lock.value;
      this.#isWhole = false;
      await old.release();
    }
    if (this.#isWhole) return;
    await replaceFile(paths.tokenFile, `${token}\n`, 0o600);
    const published = await this.#lock.publish(url);
    if (!published.ok) return this.#failed(published.error);
    await restored();
    this.#isWhole = true;
    this.#tell(
      `The state folder ${paths.stateDir} was taken away while VRAM Landlord ran. It was made anew, with what is pinned and learnt; events of before are lost.`,
    );
    this.#trouble = null;
  }

  #failed({ code, message }: LandlordError): void {
    if (code !== this.#trouble)
      this.#tell(
        `The state folder ${this.#options.paths.stateDir} was taken away while VRAM Landlord ran, so no command finds it. ${message}`,
      );
    this.#trouble = code;
  }

  #tell(reason: string): void {
    this.#options.tell({ kind: 'storage_failed', reason, numbers: {} });
  }
}
