/**
 * The machine's sleep and its end.
 *
 *   turn begins ──► kept awake ──no turn for a while──► may sleep
 *   suspend ──► big models leave, if so set, while logind waits ──► asleep ──► resume: readings are old
 *   shutdown, log-out ──► the app quits in order, while logind waits
 */

import { turnInProgress } from '../../shared/keep-awake.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { Command, RuntimeApi } from '../core/runtime-api.ts';
import type { DeskElectron } from './desk-parts.ts';
import type { Inhibitor } from './inhibitor.ts';

export interface PowerOptions {
  readonly electron: Pick<DeskElectron, 'powerMonitor'>;
  readonly api: Pick<RuntimeApi, 'state' | 'command'>;
  readonly makeInhibitor: (mode: 'block' | 'delay', onChange: () => void) => Inhibitor;
  readonly unloadBeforeSuspend: () => boolean;
  readonly quit: () => void;
  /** What is shown has changed. */
  readonly onChange: () => void;
  readonly epochMs: () => number;
}

/** Requests of one turn follow each other closely: the lock is not taken and given up for each. */
const AWAKE_AFTER_MS = 20_000;
/** logind waits 5 s by default (`InhibitDelayMaxSec`). */
const SUSPEND_LIMIT_MS = 4_000;

export class Power {
  readonly #options: PowerOptions;
  readonly #awake: Inhibitor;
  readonly #delay: Inhibitor;
  #turn: string | null = null;
  #releaseTimer: NodeJS.Timeout | undefined;
  #resumedAtMs: number | null = null;
  #suspended = false;

  constructor(options: PowerOptions) {
    this.#options = options;
    this.#awake = options.makeInhibitor('block', options.onChange);
    this.#delay = options.makeInhibitor('delay', options.onChange);
    const { powerMonitor } = options.electron;
    powerMonitor.on('suspend', () => void this.#suspend());
    powerMonitor.on('resume', () => this.#resume());
    // Electron then holds the shutdown up until the app has ended by itself.
    powerMonitor.on('shutdown', (event?: { preventDefault(): void }) => {
      event?.preventDefault();
      options.quit();
    });
    this.settingsChanged();
  }

  /** Epoch ms of the last resume; readings from before it are old. null: none. */
  get resumedAtMs(): number | null {
    return this.#resumedAtMs;
  }

  /** For the menu; null: the machine may sleep. */
  get sentence(): string | null {
    const { state } = this.#awake;
    if (state === 'free') return null;
    if (state === 'refused') {
      return this.#turn === null ? null : `In a turn: ${this.#turn} (the machine may sleep all the same)`;
    }
    return this.#turn === null
      ? 'Keeps the machine awake a moment longer'
      : `Keeps the machine awake: ${this.#turn}`;
  }

  onState(state: LandlordState | null): void {
    const turn = turnInProgress(state);
    if (turn === this.#turn) return;
    const begins = this.#turn === null;
    this.#turn = turn;
    clearTimeout(this.#releaseTimer);
    if (turn === null) {
      this.#releaseTimer = setTimeout(() => this.#awake.release(), AWAKE_AFTER_MS);
      this.#releaseTimer.unref();
    } else if (begins || this.#awake.state === 'free') this.#awake.hold(`A model is answering: ${turn}`);
    this.#options.onChange();
  }

  settingsChanged(): void {
    if (this.#options.unloadBeforeSuspend()) this.#delay.hold('Big models are unloaded first');
    else this.#delay.release();
  }

  stop(): void {
    clearTimeout(this.#releaseTimer);
    this.#awake.release();
    this.#delay.release();
  }

  async #suspend(): Promise<void> {
    this.#suspended = true;
    if (this.#options.unloadBeforeSuspend()) {
      const { api } = this.#options;
      const work = Promise.all(unloadsBeforeSuspend(api.state()).map((command) => api.command(command)));
      const limit = new Promise((resolve) => setTimeout(resolve, SUSPEND_LIMIT_MS).unref());
      await Promise.race([work, limit]);
    }
    // Given up, the machine sleeps; a lock that is not held lets it sleep anyway.
    if (this.#suspended) this.#delay.release();
  }

  #resume(): void {
    this.#suspended = false;
    this.#resumedAtMs = this.#options.epochMs();
    this.settingsChanged();
    this.#options.onChange();
  }
}

/** Big models that nobody uses and nobody keeps; nothing is cut off for a sleep that may last a minute. */
export function unloadsBeforeSuspend(state: Pick<LandlordState, 'models'>): readonly Command[] {
  return state.models
    .filter((model) => model.big && !model.pinned && model.busy === false)
    .filter((model) => model.status === 'loaded' || model.status === 'sleeping')
    .map((model) => ({ type: 'unload', model: model.id, force: false }));
}
