import type { NewEvent } from '../../../shared/events.ts';
import type { SamplerTrouble, SampleSet } from '../devices/sample.ts';

/** A sampler that ends again and again is told once in so long; how often is in the numbers. */
const ONE_STORY_MS = 60_000;

/**
 * What becomes an event of how the sampler itself fares: that its process was replaced (it died, or a
 * driver or a tool held it up), and that no further one is started because those before it are stuck in
 * the driver. What fails of a single device is told with that device.
 */
export class SamplerNews {
  #restarts = 0;
  #toldAtMs: number | null = null;
  #isStuck = false;

  /** `nowMs` monotonic. */
  take(set: Pick<SampleSet, 'troubles'>, nowMs: number): readonly NewEvent[] {
    // A reading without such a trouble: the driver answers again.
    if (!set.troubles.some(({ code }) => code.startsWith('sampler-'))) this.#isStuck = false;
    return set.troubles.flatMap((trouble) => this.#tell(trouble, nowMs) ?? []);
  }

  #tell(trouble: SamplerTrouble, nowMs: number): NewEvent | null {
    if (trouble.code === 'sampler-stuck') {
      if (this.#isStuck) return null;
      this.#isStuck = true;
      return { kind: 'driver_trouble', reason: trouble.message, numbers: {} };
    }
    if (trouble.code !== 'sampler-restarted') return null;
    this.#restarts += 1;
    if (this.#toldAtMs !== null && nowMs - this.#toldAtMs < ONE_STORY_MS) return null;
    const restarts = this.#restarts;
    this.#restarts = 0;
    this.#toldAtMs = nowMs;
    const reason = `${trouble.message} Until it answers, no guard acts on a reading that is too old.`;
    return { kind: 'sampler_restarted', reason, numbers: { restarts } };
  }
}
