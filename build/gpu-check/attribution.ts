import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { SmiAnswer } from '../../electron/core/devices/nvidia-smi-query.ts';
import type { NvmlBinding, NvmlHandle } from '../../electron/core/devices/nvml-binding.ts';
import { cardMemory, cardProcesses } from '../../electron/core/devices/nvml-card.ts';
import { Ledger } from '../../electron/core/ledger/ledger.ts';

export interface AttributionStep {
  readonly step: string;
  /** Held by our program's allocations, beside its context. */
  readonly allocatedBytes: number;
  /** Of our program, by each source; null: not told, or not listed. */
  readonly nvmlBytes: number | null;
  readonly smiBytes: number | null;
  readonly cardUsedBytes: number | null;
  /** What the ledger would still give out, and what it has as free. */
  readonly ledgerRefuses: boolean | null;
}

export interface Attribution {
  readonly why: string | null;
  readonly steps: readonly AttributionStep[];
  /** Largest difference between what was allocated and what a source shows more than at the context alone. */
  readonly nvmlWorstBytes: number | null;
  readonly smiWorstBytes: number | null;
}

export interface AttributionParts {
  readonly nvml: NvmlBinding;
  readonly handle: NvmlHandle;
  readonly askSmi: () => Promise<SmiAnswer>;
  readonly pciAddress: string;
  /** This very program, started once more as the allocator. */
  readonly command: readonly [string, ...string[]];
}

const MIB = 1024 ** 2;
const AMOUNTS_BYTES = [64 * MIB, 256 * MIB, 1024 * MIB];
const answerShape = z.object({ ok: z.boolean(), why: z.string().optional() });

/** A program of ours takes and gives back known amounts; what each source shows of it, after each step. */
export async function attribute(parts: AttributionParts): Promise<Attribution> {
  const [program, ...args] = parts.command;
  const child = spawn(program, [...args, 'allocate', parts.pciAddress], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (): Promise<{ readonly ok: boolean; readonly why?: string | undefined }> => {
    const line = await lines.next();
    return line.done === true
      ? { ok: false, why: 'The allocating program ended.' }
      : answerShape.parse(JSON.parse(line.value));
  };
  const tell = (text: string): Promise<{ readonly ok: boolean; readonly why?: string | undefined }> => {
    child.stdin.write(`${text}\n`);
    return answer();
  };
  const steps: AttributionStep[] = [];
  let why: string | null = null;
  try {
    const begun = await answer();
    if (!begun.ok) return { why: begun.why ?? null, steps, nvmlWorstBytes: null, smiWorstBytes: null };
    const pid = child.pid ?? -1;
    steps.push(await look(parts, pid, 'its context alone', 0));
    let held = 0;
    for (const bytes of AMOUNTS_BYTES) {
      const got = await tell(`alloc ${bytes}`);
      if (!got.ok) {
        why = `${bytes / MIB} MiB were not given: ${got.why}`;
        break;
      }
      held += bytes;
      steps.push(await look(parts, pid, `and ${bytes / MIB} MiB`, held));
    }
    const freed = await tell('free');
    if (freed.ok) steps.push(await look(parts, pid, 'all given back', 0));
    else why ??= freed.why ?? null;
  } finally {
    child.stdin.end();
    child.kill();
  }
  return { why, steps, nvmlWorstBytes: worst(steps, 'nvmlBytes'), smiWorstBytes: worst(steps, 'smiBytes') };
}

async function look(
  parts: AttributionParts,
  pid: number,
  step: string,
  allocatedBytes: number,
): Promise<AttributionStep> {
  const rows = cardProcesses(parts.nvml, parts.handle);
  const memory = cardMemory(parts.nvml, parts.handle);
  const smi = await parts.askSmi();
  const used = memory.ok ? memory.value.usedBytes : null;
  return {
    step,
    allocatedBytes,
    nvmlBytes: rows?.find((row) => row.pid === pid)?.bytes ?? null,
    smiBytes: smi.ok ? (smi.report.processes.find((row) => row.pid === pid)?.bytes ?? null) : null,
    cardUsedBytes: used,
    ledgerRefuses: memory.ok ? refuses(memory.value.freeBytes, memory.value.totalBytes) : null,
  };
}

/** A booking of one MiB more than the driver has free must be refused, whatever the book has. */
function refuses(freeBytes: number | null, totalBytes: number | null): boolean | null {
  if (freeBytes === null || totalBytes === null) return null;
  const ledger = new Ledger();
  ledger.setLimits('card', { totalBytes, capBytes: totalBytes, floorBytes: 0, hardFloorBytes: 0 });
  ledger.reconcile('card', {
    driverFreeBytes: freeBytes,
    hostAvailableBytes: null,
    totalBytes,
    unified: false,
    sampledAtMs: 0,
  });
  const ask = (id: string, predictedBytes: number): boolean =>
    ledger.reserve({ id, kind: 'model', name: id, deviceId: 'card', predictedBytes, nowMs: 0 }).ok;
  return !ask('too much', freeBytes + MIB) && ask('fits', Math.floor(freeBytes / 2));
}

function worst(steps: readonly AttributionStep[], source: 'nvmlBytes' | 'smiBytes'): number | null {
  const alone = steps[0]?.[source] ?? null;
  const others = steps.slice(1).map((step) => step[source]);
  if (alone === null || others.length === 0 || others.includes(null)) return null;
  return Math.max(
    ...steps.slice(1).map((step) => Math.abs((step[source] ?? 0) - alone - step.allocatedBytes)),
  );
}
