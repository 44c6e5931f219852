import { plausibleBytes } from './quantity.ts';

/**
 * Struct layouts and constants of NVML, from NVIDIA's NVML API reference (nvml.h, ABI stable since
 * driver 450). Little-endian 64-bit: NVML exists on no other machines.
 */
export const NVML_SUCCESS = 0;
export const NVML_NOT_SUPPORTED = 3;
export const NVML_NO_PERMISSION = 4;
export const NVML_INSUFFICIENT_SIZE = 7;
export const NVML_FUNCTION_NOT_FOUND = 13;
export const NVML_ARGUMENT_VERSION_MISMATCH = 25;

/** nvmlMemory_t: total, free, used (u64 each). `used` includes the driver's reserve. */
export const MEMORY_V1_BYTES = 24;
/** nvmlMemory_v2_t: version (u32, padded), total, reserved, free, used. */
export const MEMORY_V2_BYTES = 40;
/** NVML_STRUCT_VERSION(Memory, 2): size | version << 24. */
export const MEMORY_V2_VERSION = MEMORY_V2_BYTES | (2 << 24);
/** nvmlUtilization_t: gpu, memory (u32, percent). */
export const UTILIZATION_BYTES = 8;
/** nvmlProcessInfo_v1_t: pid (u32, padded), used (u64). */
export const PROCESS_V1_BYTES = 16;
/** nvmlProcessInfo_v2_t, also of the _v3 calls: pid, used, GPU instance (u32), compute instance (u32). */
export const PROCESS_V2_BYTES = 24;

export interface NvmlMemory {
  readonly totalBytes: number | null;
  readonly reservedBytes: number | null;
  readonly freeBytes: number | null;
  readonly usedBytes: number | null;
}

export function encodeMemoryV2Request(): Buffer {
  const buffer = Buffer.alloc(MEMORY_V2_BYTES);
  buffer.writeUInt32LE(MEMORY_V2_VERSION, 0);
  return buffer;
}

export function decodeMemoryV2(buffer: Buffer): NvmlMemory {
  const totalBytes = bytesAt(buffer, 8);
  return {
    totalBytes,
    reservedBytes: plausibleBytes(bytesAt(buffer, 16), totalBytes),
    freeBytes: plausibleBytes(bytesAt(buffer, 24), totalBytes),
    usedBytes: plausibleBytes(bytesAt(buffer, 32), totalBytes),
  };
}

export function decodeMemoryV1(buffer: Buffer): NvmlMemory {
  const totalBytes = bytesAt(buffer, 0);
  return {
    totalBytes,
    reservedBytes: null,
    freeBytes: plausibleBytes(bytesAt(buffer, 8), totalBytes),
    usedBytes: plausibleBytes(bytesAt(buffer, 16), totalBytes),
  };
}

/** Share of time a kernel ran, 0–100. */
export function decodeUtilization(buffer: Buffer): number | null {
  const percent = buffer.readUInt32LE(0);
  return percent <= 100 ? percent : null;
}

export interface NvmlProcess {
  readonly pid: number;
  /** NVML_VALUE_NOT_AVAILABLE (2^64−1: WDDM, WSL) is null. */
  readonly bytes: number | null;
}

export function decodeProcesses(buffer: Buffer, count: number, stride: number): readonly NvmlProcess[] {
  const rows: NvmlProcess[] = [];
  const whole = Math.min(count, Math.floor(buffer.length / stride));
  for (let row = 0; row < whole; row += 1) {
    const at = row * stride;
    rows.push({ pid: buffer.readUInt32LE(at), bytes: bytesAt(buffer, at + 8) });
  }
  return rows;
}

export function cString(buffer: Buffer): string {
  const end = buffer.indexOf(0);
  return buffer.toString('utf8', 0, end < 0 ? buffer.length : end);
}

function bytesAt(buffer: Buffer, offset: number): number | null {
  return plausibleBytes(Number(buffer.readBigUInt64LE(offset)));
}

const MEANINGS: Readonly<Record<number, readonly [code: string, message: string]>> = {
  4: [
    'nvidia-no-permission',
    'The NVIDIA driver refuses this user: add the user to the group of /dev/nvidia*.',
  ],
  9: [
    'nvidia-driver-not-running',
    'The NVIDIA driver is not running: load it with `sudo modprobe nvidia`, or install it. It is tried again by itself.',
  ],
  12: ['nvidia-no-nvml', 'NVIDIA’s management library is missing: install the driver’s utilities.'],
  15: ['nvidia-gpu-lost', 'An NVIDIA card has dropped off the PCI bus: restart the machine.'],
  16: [
    'nvidia-reset-required',
    'An NVIDIA card asks for a reset: stop what uses it and run `sudo nvidia-smi --gpu-reset`, or restart.',
  ],
  17: ['nvidia-blocked', 'The operating system blocks access to the NVIDIA card.'],
  18: [
    'nvidia-driver-mismatch',
    'The NVIDIA driver was updated but the old one is still loaded: restart the machine, or unload and load the nvidia modules.',
  ],
};

/** What an NVML return code means and what to do; never for NVML_SUCCESS. */
export function nvmlTrouble(code: number, what: string): { readonly code: string; readonly message: string } {
  const known = MEANINGS[code];
  if (known !== undefined) return { code: known[0], message: known[1] };
  return {
    code: `nvml-error-${code}`,
    message: `NVIDIA’s library answered error ${code} when asked for ${what}: see \`nvidia-smi\`. It is tried again by itself.`,
  };
}
