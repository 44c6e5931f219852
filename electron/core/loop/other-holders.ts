import type { ProcessMemory } from '../devices/sample.ts';
import { programKind } from '../ledger/program-kind.ts';

/** Programs that are no model server: what they hold on a device, and who they are. */
export interface OtherHolders {
  readonly bytes: number;
  readonly pids: ReadonlySet<number>;
}

/**
 * What the desktop holds on a device, and jobs that were there before (`known`): a job that has come since
 * may be the very server whose load is being measured. null: the driver names nobody's bytes.
 */
export function otherHolders(
  processes: readonly ProcessMemory[],
  deviceId: string,
  modelPids: ReadonlySet<number>,
  known: ReadonlySet<number> | null,
): OtherHolders | null {
  const here = processes.filter((use) => use.deviceId === deviceId && use.bytes !== null);
  if (here.length === 0) return null;
  const others = here.filter(
    (use) =>
      !modelPids.has(use.pid) &&
      (programKind(use) === 'desktop' || (!SERVERS.test(use.name) && (known === null || known.has(use.pid)))),
  );
  return {
    bytes: others.reduce((sum, use) => sum + (use.bytes ?? 0), 0),
    pids: new Set(others.map((use) => use.pid)),
  };
}

/** They may load into a process that has long been there. */
const SERVERS = /(?:llama|ollama|lm.?studio|lemonade|koboldcpp|vllm|sglang|node$|electron)/i;
