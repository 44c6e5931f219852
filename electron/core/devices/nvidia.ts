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
  busyPercent: null,
  memoryBusyPercent: null,
  displayActive: null,
  driverModel: null,
  migEnabled: null,
  mig: [],
};

/** Used bytes over all MIG instances, each counted once; null when there is none or one is unknown. */
export function migUsedBytes(rows: readonly MigInstance[]): number | null {
  if (rows.length === 0) return null;
  const perInstance = new Map<number | null, number | null>();
  for (const row of rows) perInstance.set(row.gpuInstanceId, row.usedBytes);
  let sum = 0;
  for (const used of perInstance.values()) {
    if (used === null) return null;
    sum += used;
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

/** Jetson, GB10 and the like have no framebuffer of their own: every memory figure is missing, in a good answer. */
export function hasNoFramebuffer(gpu: NvidiaGpu): boolean {
  return gpu.totalBytes === null && gpu.usedBytes === null && gpu.freeBytes === null;
}
