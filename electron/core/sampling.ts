import type { Settings } from '../../shared/settings.ts';
import type { SampleSet } from './devices/sample.ts';
import type { Sampler } from './devices/sampler.ts';

/** The sampler of the devices that the settings name: another one takes its place where they change. */
export class Sampling {
  readonly #create: (devices: Settings['devices']) => Sampler;
  readonly #onSamples: (set: SampleSet) => void;
  #devices: Settings['devices'];
  #current: Sampler;
  /** Those it watches now, as a text to compare; a new sampler has been told of none. */
  #watched = '';

  constructor(options: {
    readonly devices: Settings['devices'];
    readonly create: (devices: Settings['devices']) => Sampler;
    readonly onSamples: (set: SampleSet) => void;
  }) {
    this.#create = options.create;
    this.#onSamples = options.onSamples;
    this.#devices = options.devices;
    this.#current = options.create(options.devices);
  }

  get current(): Sampler {
    return this.#current;
  }

  start(): void {
    this.#current.start(this.#onSamples);
  }

  stop(): Promise<void> {
    return this.#current.stop();
  }

  /** The next one reads before the last has ended, so that no reading is missed. */
  async follow(devices: Settings['devices']): Promise<void> {
    if (JSON.stringify(devices) === JSON.stringify(this.#devices)) return;
    const old = this.#current;
    this.#devices = devices;
    this.#current = this.#create(devices);
    this.#watched = '';
    this.start();
    await old.stop();
  }

  /** Processes whose resident memory is to be read; it is told only where they changed. */
  watch(pids: readonly number[]): void {
    const key = pids.join();
    if (key === this.#watched) return;
    this.#watched = key;
    this.#current.watch(pids);
  }
}
