import { createRequire } from 'node:module';
import { messageOf } from '../../../shared/errors.ts';
import { NVML_FUNCTION_NOT_FOUND } from './nvml-layout.ts';

/** A card as NVML holds it: an address, passed back as it came. */
export type NvmlHandle = bigint;

/**
 * The NVML calls that are used, with buffers for their structs (nvml-layout.ts decodes them). Each
 * returns NVML's own code; a call the installed driver lacks answers NVML_FUNCTION_NOT_FOUND.
 */
export interface NvmlBinding {
  init(): number;
  shutdown(): number;
  /** `pciAddress` as in `0000:01:00.0`. Attaches to that card alone. */
  handleByPci(pciAddress: string): { readonly code: number; readonly handle: NvmlHandle };
  name(handle: NvmlHandle, out: Buffer): number;
  memoryV2(handle: NvmlHandle, out: Buffer): number;
  memoryV1(handle: NvmlHandle, out: Buffer): number;
  utilization(handle: NvmlHandle, out: Buffer): number;
  displayActive(handle: NvmlHandle, out: Buffer): number;
  /** `count` is a u32: room in `out` on the way in, rows on the way out. */
  processes(
    kind: 'compute' | 'graphics',
    version: 1 | 2 | 3,
    handle: NvmlHandle,
    count: Buffer,
    out: Buffer,
  ): number;
  /** Calls for a card split by MIG; left out by a driver from before it. */
  readonly mig?: NvmlMigCalls;
}

/** An instance's handle answers `memoryV2` and `memoryV1` like a card's; each `out` is one u32. */
export interface NvmlMigCalls {
  /** 1: split. */
  mode(handle: NvmlHandle, out: Buffer): number;
  /** How many instances there may be; indexes below it may be empty (NVML_ERROR_NOT_FOUND). */
  most(handle: NvmlHandle, out: Buffer): number;
  handleAt(handle: NvmlHandle, index: number): { readonly code: number; readonly handle: NvmlHandle };
  gpuInstanceId(handle: NvmlHandle, out: Buffer): number;
}

export type NvmlLoad =
  | { readonly ok: true; readonly nvml: NvmlBinding }
  | { readonly ok: false; readonly why: string };

type Call = (...args: readonly unknown[]) => number;

/** Loads the driver's library. koffi is loaded only here, so that a machine without NVIDIA never has it in memory. */
export function loadNvml(library = 'libnvidia-ml.so.1'): NvmlLoad {
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    const lib = koffi.load(library);
    const find = (name: string, ...args: readonly string[]): Call => {
      try {
        const call = lib.func(name, 'int', [...args]);
        return (...values) => Number(call(...values));
      } catch {
        return () => NVML_FUNCTION_NOT_FOUND;
      }
    };
    const device = (name: string): Call => find(name, 'void *', 'void *');
    const list = (name: string): Call => find(name, 'void *', 'void *', 'void *');
    const init = find('nvmlInit_v2');
    const shutdown = find('nvmlShutdown');
    const byPci = find('nvmlDeviceGetHandleByPciBusId_v2', 'str', 'void *');
    const name = find('nvmlDeviceGetName', 'void *', 'void *', 'uint32_t');
    const memoryV2 = device('nvmlDeviceGetMemoryInfo_v2');
    const memoryV1 = device('nvmlDeviceGetMemoryInfo');
    const utilization = device('nvmlDeviceGetUtilizationRates');
    const displayActive = device('nvmlDeviceGetDisplayActive');
    const migMode = find('nvmlDeviceGetMigMode', 'void *', 'void *', 'void *');
    const migMost = device('nvmlDeviceGetMaxMigDeviceCount');
    const migHandle = find('nvmlDeviceGetMigDeviceHandleByIndex', 'void *', 'uint32_t', 'void *');
    const gpuInstanceId = device('nvmlDeviceGetGpuInstanceId');
    const lists = {
      compute: {
        1: list('nvmlDeviceGetComputeRunningProcesses'),
        2: list('nvmlDeviceGetComputeRunningProcesses_v2'),
        3: list('nvmlDeviceGetComputeRunningProcesses_v3'),
      },
      graphics: {
        1: list('nvmlDeviceGetGraphicsRunningProcesses'),
        2: list('nvmlDeviceGetGraphicsRunningProcesses_v2'),
        3: list('nvmlDeviceGetGraphicsRunningProcesses_v3'),
      },
    };
    const nvml: NvmlBinding = {
      init: () => init(),
      shutdown: () => shutdown(),
      handleByPci: (pciAddress) => {
        const out = Buffer.alloc(8);
        const code = byPci(pciAddress, out);
        return { code, handle: out.readBigUInt64LE(0) };
      },
      name: (handle, out) => name(handle, out, out.length),
      memoryV2: (handle, out) => memoryV2(handle, out),
      memoryV1: (handle, out) => memoryV1(handle, out),
      utilization: (handle, out) => utilization(handle, out),
      displayActive: (handle, out) => displayActive(handle, out),
      processes: (kind, version, handle, count, out) => lists[kind][version](handle, count, out),
      mig: {
        mode: (handle, out) => migMode(handle, out, Buffer.alloc(4)),
        most: (handle, out) => migMost(handle, out),
        handleAt: (handle, index) => {
          const out = Buffer.alloc(8);
          const code = migHandle(handle, index, out);
          return { code, handle: out.readBigUInt64LE(0) };
        },
        gpuInstanceId: (handle, out) => gpuInstanceId(handle, out),
      },
    };
    return { ok: true, nvml };
  } catch (thrown) {
    return { ok: false, why: messageOf(thrown) };
  }
}
