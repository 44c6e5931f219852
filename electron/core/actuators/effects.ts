import type { Result } from '../../../shared/errors.ts';
import type { BusyAnswer } from '../backends/backend.ts';
import type { ArmedSignal } from './reaper.ts';

/**
 * Everything the executor can do to the world. Guards decide without it, tests record it, and
 * observing or replaying means: there is none.
 */
export interface Effects {
  /** Asked just before an eviction only; it may reset the model's own sleep timer. */
  confirmIdle(modelId: string): Promise<BusyAnswer>;
  /** Keeps what an idle model has read, before it is unloaded; answers whether that took any time. Left out: nothing is kept. */
  park?(modelId: string, limitMs: number): Promise<boolean>;
  /** It stays after all. */
  unpark?(modelId: string): void;
  unload(modelId: string): Promise<Result<void>>;
  /** Proves the model's process and holds a pidfd on it. */
  arm(modelId: string): Promise<Result<ArmedSignal>>;
  /** Reads the backend's list anew, after something was done behind its back. */
  refresh(modelId: string): void;
  /** True when the process that held this model is gone; null when that can't be told. */
  processGone(modelId: string): Promise<boolean | null>;
  /** Asks the sampler for a reading now, so that what came back is seen at once. */
  sampleSoon(): void;
  /** The machine has resumed: devices are looked for again. */
  lookAgain(): void;
}
