import type { MemoryAnswer } from './nvidia-memory.ts';

/** What any of nvidia-smi's formats says; bytes and percentages, null where the driver does not tell. */
export interface NvidiaGpu {
  readonly index: number | null;
  readonly uuid: string | null;
  /** `0000:01:00.0`. */
  readonly pciAddress: string | null;
  /** The table cuts long names: `NVIDIA GeForce RTX 4080 ...`. */
  readonly name: string | null;
  readonly totalBytes: number | null;
  /** Held by the driver and firmware; newer drivers keep it out of `used`. */
  readonly reservedBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
  /** Why there are no figures, where there are none. */
  readonly memoryAnswer: MemoryAnswer;
  readonly busyPercent: number | null;
  readonly memoryBusyPercent: number | null;
  readonly displayActive: boolean | null;
  readonly driverModel: string | null;
  readonly migEnabled: boolean | null;
  readonly mig: readonly MigInstance[];
}

/**
 * One MIG row. Rows of one GPU instance print the same memory, so it is counted once per
 * instance; the instances' totals need not add up to the card's.
 */
export interface MigInstance {
  readonly gpuInstanceId: number | null;
  readonly computeInstanceId: number | null;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
}

export interface NvidiaProcess {
  readonly gpuIndex: number | null;
  readonly gpuUuid: string | null;
  readonly pciAddress: string | null;
  readonly gpuInstanceId: number | null;
  readonly computeInstanceId: number | null;
  readonly pid: number;
  readonly type: 'C' | 'G' | 'C+G' | null;
  /** null where the driver gives none. */
  readonly name: string | null;
  /** null under WDDM, WSL and without permission. */
  readonly bytes: number | null;
}

export interface NvidiaTrouble {
  /** Stable: `nvidia-driver-not-running`, `nvidia-driver-mismatch`, … */
  readonly code: string;
  /** A sentence that says what to do. */
  readonly message: string;
}

export const NO_GPU_FIGURES: NvidiaGpu = {
  index: null,
  uuid: null,
  pciAddress: null,
  name: null,
  totalBytes: null,
  reservedBytes: null,
  usedBytes: null,
  freeBytes: null,
  memoryAnswer: 'missing',
  busyPercent: null,
  memoryBusyPercent: null,
  displayActive: null,
  driverModel: null,
  migEnabled: null,
  mig: [],
};

/** Used bytes over all MIG instances, each counted once; null when there is none or one is unknown. */
export function migUsedBytes(rows: readonly MigInstance[]): number | null {
  return sumPerInstance(rows, (row) => row.usedBytes);
}

/** Total over all MIG instances, each counted once; it may be less than the card's. null as above. */
export function migTotalBytes(rows: readonly MigInstance[]): number | null {
  return sumPerInstance(rows, (row) => row.totalBytes);
}

function sumPerInstance(
  rows: readonly MigInstance[],
  bytesOf: (row: MigInstance) => number | null,
): number | null {
  if (rows.length === 0) return null;
  const perInstance = new Map<number, number | null>();
  for (const row of rows) {
    // Rows that do not say which instance they are of may be the same memory, or not.
    if (row.gpuInstanceId === null) return rows.length === 1 ? bytesOf(row) : null;
    perInstance.set(row.gpuInstanceId, bytesOf(row));
  }
  let sum = 0;
  for (const bytes of perInstance.values()) {
    if (bytes === null) return null;
    sum += bytes;
  }
  return sum;
}

/** `C`, `G`, `C+G`; MPS clients print `M+C` and the like. */
export function parseProcessType(text: string | null | undefined): NvidiaProcess['type'] {
  const parts = (text ?? '').trim().split('+');
  const compute = parts.includes('C');
  const graphics = parts.includes('G');
  return compute ? (graphics ? 'C+G' : 'C') : graphics ? 'G' : null;
}
