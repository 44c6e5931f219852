import type { DeviceKind } from '../../../shared/state.ts';
import type { ProgramSort } from '../process/known-programs.ts';

/** Where a reading came from. */
export type SampleSource =
  | 'amdgpu-sysfs'
  | 'nvml'
  | 'nvidia-smi'
  | 'rocm-smi'
  | 'drm-fdinfo'
  | 'meminfo'
  | 'simulated'
  | 'none';

/**
 * One reading of a device. Every figure that could not be read is null, never 0 (rule 5).
 *
 * `discrete`: VRAM of its own. `unified`: models and the system share one memory (APU, Grace,
 * Jetson, Apple); total and free then speak of the pool models can really use, bounded by what the
 * system has available. `system`: no GPU, plain RAM.
 */
export interface DeviceSample {
  /** `pci:0000:03:00.0`, `system`, `sim:0`. */
  readonly id: string;
  readonly kind: DeviceKind;
  readonly memory: 'discrete' | 'unified' | 'system';
  readonly name: string;
  readonly pciAddress: string | null;
  readonly drivesDisplay: boolean | null;
  /** `suspended`: runtime power management put it to sleep; it was not touched, its figures are null. */
  readonly power: 'active' | 'suspended' | 'unknown';
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
  /** MemAvailable, where memory is unified or system. */
  readonly hostAvailableBytes: number | null;
  /** 0–100. */
  readonly busyPercent: number | null;
  /** The source's own word that VRAM is being moved out; left out where it has none (see gtt.ts). */
  readonly evictionUnderWay?: boolean | null;
  readonly source: SampleSource;
  /** CLOCK_MONOTONIC milliseconds at the reading. */
  readonly takenAtMs: number;
  /** How often this source is read; older than three of these is stale. */
  readonly periodMs: number;
  /** Plain sentences for a person. */
  readonly notes: readonly string[];
  /** Why there is no reading, in a sentence; null when there is one. */
  readonly error: string | null;
}

/** Memory one process holds on one device; each DRM client is counted once (fdinfo), kfd and fdinfo by the larger. */
export interface ProcessMemory {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat, clock ticks since boot; null where it can't be read. */
  readonly startTimeTicks: number | null;
  /** Short name, as /proc/<pid>/comm or the driver gives it. */
  readonly name: string;
  readonly deviceId: string;
  /** Device memory; null when the driver names the process but not its bytes. */
  readonly bytes: number | null;
  readonly gttBytes: number | null;
  /** `C`, `G` or `C+G` as NVIDIA types it; null elsewhere. */
  readonly type: 'C' | 'G' | 'C+G' | null;
  readonly source: 'drm-fdinfo' | 'kfd' | 'nvml' | 'nvidia-smi' | 'statm';
  /** What it is known to be, and then `name` is what people call it; left out: not known. */
  readonly sort?: ProgramSort;
}

export interface SamplerTrouble {
  /** Stable, for telling a trouble once: `nvidia-smi-exit-9`. */
  readonly code: string;
  readonly message: string;
  readonly deviceId: string | null;
}

/** What one tick of the sampler brings. */
export interface SampleSet {
  /** Ascending; a restarted sampler goes on counting. */
  readonly sequence: number;
  readonly takenAtMs: number;
  readonly devices: readonly DeviceSample[];
  /** null: processes were not read this time; keep the last answer and its age. */
  readonly processes: readonly ProcessMemory[] | null;
  readonly troubles: readonly SamplerTrouble[];
}

/** Stale after 3 of its source's periods (design §1). */
export function isStale(sample: DeviceSample, nowMs: number): boolean {
  return sample.error !== null || nowMs - sample.takenAtMs > 3 * sample.periodMs;
}
