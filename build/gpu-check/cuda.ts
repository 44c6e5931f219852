import { createRequire } from 'node:module';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';

/**
 * The few calls of the CUDA driver API that take a known amount of a card's memory. From NVIDIA's CUDA
 * Driver API reference (cuda.h); the `_v2` names are those of the ABI since CUDA 3.2. 0 is CUDA_SUCCESS.
 */
export interface CudaCard {
  readonly name: string;
  /** An address on the card, or the driver's code as an error. Touched, so that nothing is put off. */
  allocate(bytes: number): Result<bigint>;
  free(address: bigint): Result<void>;
  close(): void;
}

type Call = (...args: readonly unknown[]) => number;

/** A context on the card at a PCI address (`0000:01:00.0`). Errors: `not_supported`, with the call that failed and its code. */
export function openCudaCard(pciAddress: string, library = 'libcuda.so.1'): Result<CudaCard> {
  let find: (name: string, ...args: readonly string[]) => Call;
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    const lib = koffi.load(library);
    find = (name, ...args) => {
      const call = lib.func(name, 'int', [...args]);
      return (...values) => Number(call(...values));
    };
    return open(find, pciAddress);
  } catch (thrown) {
    return fail('not_supported', `${library} can’t be loaded: ${messageOf(thrown)}`);
  }
}

function open(
  find: (name: string, ...args: readonly string[]) => Call,
  pciAddress: string,
): Result<CudaCard> {
  const init = find('cuInit', 'uint32_t');
  const byAddress = find('cuDeviceGetByPCIBusId', 'void *', 'str');
  const getName = find('cuDeviceGetName', 'void *', 'int', 'int');
  const createContext = find('cuCtxCreate_v2', 'void *', 'uint32_t', 'int');
  const destroyContext = find('cuCtxDestroy_v2', 'void *');
  const memAlloc = find('cuMemAlloc_v2', 'void *', 'size_t');
  const memSet = find('cuMemsetD8_v2', 'uint64_t', 'uint8_t', 'size_t');
  const memFree = find('cuMemFree_v2', 'uint64_t');
  const synchronize = find('cuCtxSynchronize');

  const device = Buffer.alloc(4);
  const context = Buffer.alloc(8);
  const steps: readonly (readonly [string, () => number])[] = [
    ['cuInit', () => init(0)],
    ['cuDeviceGetByPCIBusId', () => byAddress(device, pciAddress)],
    ['cuCtxCreate', () => createContext(context, 0, device.readInt32LE(0))],
  ];
  for (const [name, step] of steps) {
    const code = step();
    if (code !== 0) return failed(name, code);
  }
  const name = Buffer.alloc(128);
  getName(name, name.length, device.readInt32LE(0));
  return ok({
    name: name.toString('utf8', 0, Math.max(0, name.indexOf(0))),
    allocate(bytes) {
      const out = Buffer.alloc(8);
      const code = memAlloc(out, bytes);
      if (code !== 0) return failed('cuMemAlloc', code);
      const address = out.readBigUInt64LE(0);
      const set = memSet(address, 0x5a, bytes) || synchronize();
      return set === 0 ? ok(address) : failed('cuMemsetD8', set);
    },
    free(address) {
      const code = memFree(address);
      return code === 0 ? ok(undefined) : failed('cuMemFree', code);
    },
    close: () => {
      destroyContext(context.readBigUInt64LE(0));
    },
  });
}

function failed(call: string, code: number): Result<never> {
  return fail('not_supported', `${call} answered ${code} (CUresult in cuda.h).`);
}
