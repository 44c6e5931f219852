import type { MigInstance } from './nvidia.ts';
import type { NvmlBinding, NvmlHandle } from './nvml-binding.ts';
import {
  cString,
  decodeMemoryV1,
  decodeMemoryV2,
  decodeProcesses,
  decodeUtilization,
  encodeMemoryV2Request,
  MEMORY_V1_BYTES,
  NVML_ARGUMENT_VERSION_MISMATCH,
  NVML_FUNCTION_NOT_FOUND,
  NVML_INSUFFICIENT_SIZE,
  NVML_NO_PERMISSION,
  NVML_NOT_SUPPORTED,
  NVML_SUCCESS,
  type NvmlMemory,
  type NvmlProcess,
  PROCESS_V1_BYTES,
  PROCESS_V2_BYTES,
  UTILIZATION_BYTES,
} from './nvml-layout.ts';
import { shortName } from './wording.ts';

export type NvmlAnswer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: number };

/**
 * Memory of a card or of a MIG instance. A card without memory of its own (Jetson, Grace-Blackwell)
 * answers NVML_ERROR_NOT_SUPPORTED, one split by MIG NVML_ERROR_NO_PERMISSION to all but root.
 */
export function cardMemory(nvml: NvmlBinding, handle: NvmlHandle): NvmlAnswer<NvmlMemory> {
  const v2 = encodeMemoryV2Request();
  const code = nvml.memoryV2(handle, v2);
  if (code === NVML_SUCCESS) return { ok: true, value: decodeMemoryV2(v2) };
  if (!TRY_OLDER.has(code)) return { ok: false, code };
  const v1 = Buffer.alloc(MEMORY_V1_BYTES);
  const older = nvml.memoryV1(handle, v1);
  if (older === NVML_SUCCESS) return { ok: true, value: decodeMemoryV1(v1) };
  return { ok: false, code: older === NVML_FUNCTION_NOT_FOUND ? code : older };
}

/** What an older call may answer where the newer one does not. */
const TRY_OLDER: ReadonlySet<number> = new Set([
  NVML_NOT_SUPPORTED,
  NVML_NO_PERMISSION,
  NVML_FUNCTION_NOT_FOUND,
  NVML_ARGUMENT_VERSION_MISMATCH,
]);

export interface CardMig {
  /** null: the driver does not tell. */
  readonly enabled: boolean | null;
  readonly instances: readonly MigInstance[];
}

/** No card is split into more (seven compute instances today). */
const MOST_INSTANCES = 64;

/** A card's MIG instances; several compute instances of one GPU instance show the same memory. */
export function cardMig(nvml: NvmlBinding, handle: NvmlHandle): CardMig {
  const mode = numberFrom((out) => nvml.mig?.mode(handle, out));
  if (nvml.mig === undefined || mode !== 1) {
    return { enabled: mode === null ? null : false, instances: [] };
  }
  const { mig } = nvml;
  const most = numberFrom((out) => mig.most(handle, out)) ?? 0;
  const instances: MigInstance[] = [];
  for (let index = 0; index < Math.min(most, MOST_INSTANCES); index += 1) {
    const at = mig.handleAt(handle, index);
    if (at.code !== NVML_SUCCESS) continue;
    const memory = cardMemory(nvml, at.handle);
    instances.push({
      gpuInstanceId: numberFrom((out) => mig.gpuInstanceId(at.handle, out)),
      computeInstanceId: null,
      totalBytes: memory.ok ? memory.value.totalBytes : null,
      usedBytes: memory.ok ? memory.value.usedBytes : null,
    });
  }
  return { enabled: true, instances };
}

function numberFrom(call: (out: Buffer) => number | undefined): number | null {
  const out = Buffer.alloc(4);
  return call(out) === NVML_SUCCESS ? out.readUInt32LE(0) : null;
}

export function cardBusyPercent(nvml: NvmlBinding, handle: NvmlHandle): number | null {
  const out = Buffer.alloc(UTILIZATION_BYTES);
  return nvml.utilization(handle, out) === NVML_SUCCESS ? decodeUtilization(out) : null;
}

export function cardName(nvml: NvmlBinding, handle: NvmlHandle): string | null {
  const out = Buffer.alloc(96);
  const name = nvml.name(handle, out) === NVML_SUCCESS ? cString(out) : '';
  return name === '' ? null : shortName(name);
}

/** Whether a display is initialised on the card, with a monitor or not. */
export function cardDisplayActive(nvml: NvmlBinding, handle: NvmlHandle): boolean | null {
  const out = Buffer.alloc(4);
  return nvml.displayActive(handle, out) === NVML_SUCCESS ? out.readUInt32LE(0) === 1 : null;
}

export interface TypedProcess extends NvmlProcess {
  readonly type: 'C' | 'G' | 'C+G';
}

/**
 * Compute and graphics clients. A process in both lists is one of type C+G, whose bytes both lists
 * give: the larger is taken, never the sum. null: the driver does not tell.
 */
export function cardProcesses(nvml: NvmlBinding, handle: NvmlHandle): readonly TypedProcess[] | null {
  const compute = listProcesses(nvml, 'compute', handle);
  const graphics = listProcesses(nvml, 'graphics', handle);
  if (compute === null && graphics === null) return null;
  const rows = new Map<number, TypedProcess>();
  const put = (process: NvmlProcess, type: 'C' | 'G'): void => {
    const before = rows.get(process.pid);
    const bytes =
      before === undefined || before.bytes === null || process.bytes === null
        ? (before?.bytes ?? process.bytes)
        : Math.max(before.bytes, process.bytes);
    rows.set(process.pid, {
      pid: process.pid,
      bytes,
      type: before === undefined || before.type === type ? type : 'C+G',
    });
  };
  for (const process of compute ?? []) put(process, 'C');
  for (const process of graphics ?? []) put(process, 'G');
  return [...rows.values()];
}

function listProcesses(
  nvml: NvmlBinding,
  kind: 'compute' | 'graphics',
  handle: NvmlHandle,
): readonly NvmlProcess[] | null {
  for (const version of [3, 2, 1] as const) {
    const stride = version === 1 ? PROCESS_V1_BYTES : PROCESS_V2_BYTES;
    let room = 64;
    // Processes may start between two calls: a few more tries with more room.
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const count = Buffer.alloc(4);
      count.writeUInt32LE(room, 0);
      const out = Buffer.alloc(room * stride);
      const code = nvml.processes(kind, version, handle, count, out);
      const rows = count.readUInt32LE(0);
      if (code === NVML_SUCCESS) return decodeProcesses(out, rows, stride);
      if (code === NVML_FUNCTION_NOT_FOUND) break;
      if (code !== NVML_INSUFFICIENT_SIZE) return null;
      room = Math.max(room * 2, rows + 16);
    }
  }
  return null;
}
