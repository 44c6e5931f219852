/** Where a model runs, as far as it changes its footprint. `unified`: host and device are one memory. */
export type DeviceKind = 'cuda' | 'hip' | 'vulkan' | 'sycl' | 'metal' | 'cpu';

const MIB = 1_048_576;

/**
 * What a process holds on each device that no printed line names: the driver's context and its kernels.
 * Seen: CUDA 150 to 460 MiB, HIP about 400 a process. The first prompt may add some 500 more.
 */
const CONTEXT_BYTES: Readonly<Record<DeviceKind, number>> = {
  cuda: 300 * MIB,
  hip: 400 * MIB,
  vulkan: 150 * MIB,
  sycl: 300 * MIB,
  metal: 50 * MIB,
  cpu: 50 * MIB,
};

export function overheadBytes(kind: DeviceKind, devices: number): number {
  return CONTEXT_BYTES[kind] * devices;
}

/** Whether every tensor counts on the device, the input's too. */
export function isUnified(kind: DeviceKind): boolean {
  return kind === 'cpu' || kind === 'metal';
}
