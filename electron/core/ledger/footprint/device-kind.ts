import type { DeviceKind as MachineDeviceKind } from '../../../../shared/state.ts';

/** What computes, as far as it changes a footprint. */
export type DeviceKind = 'cuda' | 'hip' | 'vulkan' | 'sycl' | 'metal' | 'cpu';

export const DEVICE_KINDS: readonly DeviceKind[] = ['cuda', 'hip', 'vulkan', 'sycl', 'metal', 'cpu'];

/** Host and device are one memory, and every tensor counts on it, the input's too. */
export function isUnified(kind: DeviceKind): boolean {
  return kind === 'cpu' || kind === 'metal';
}

/** What llama.cpp most likely runs with on such a device. On an APU it has device buffers beside what it maps. */
export function kindOn(device: MachineDeviceKind): DeviceKind {
  return KINDS[device];
}

const KINDS: Readonly<Record<MachineDeviceKind, DeviceKind>> = {
  nvidia: 'cuda',
  amdgpu: 'hip',
  intel: 'vulkan',
  nouveau: 'vulkan',
  unified: 'vulkan',
  system: 'cpu',
  simulated: 'cpu',
};
