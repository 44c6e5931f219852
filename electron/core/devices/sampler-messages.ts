import type { DeviceSetting } from '../../../shared/settings.ts';
import type { ProcessFacts, ServerQuery } from '../process/identity.ts';
import type { MemoryOverrides } from './discovery.ts';
import type { SampleSet } from './sample.ts';

export interface SamplerConfig {
  /** null: found by itself. */
  readonly devices: readonly DeviceSetting[] | null;
  /** How often device totals are read, milliseconds (default 500). */
  readonly periodMs: number;
  /** How often per-process figures are read, milliseconds (default 2000). */
  readonly processPeriodMs: number;
  /** Device id → what its memory is, where the signals are wrong. */
  readonly memory: MemoryOverrides;
}

export type ToSampler =
  | { readonly type: 'start'; readonly config: SamplerConfig }
  /** Processes whose resident memory counts on devices whose memory is the system's. */
  | { readonly type: 'watch'; readonly pids: readonly number[] }
  /** The next turn is wanted now: something is about to give memory back. */
  | { readonly type: 'hurry' }
  /** The machine has resumed: devices may have come, gone or moved. */
  | { readonly type: 'look again' }
  | { readonly type: 'facts'; readonly id: number; readonly pids: readonly number[] }
  | { readonly type: 'find'; readonly id: number; readonly query: ServerQuery }
  | { readonly type: 'servers'; readonly id: number };

export type FromSampler =
  | { readonly type: 'set'; readonly set: SampleSet }
  | { readonly type: 'answer'; readonly id: number; readonly facts: readonly ProcessFacts[] };
