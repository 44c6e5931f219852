import type { ProcessMemory } from '../devices/sample.ts';
import { programKind } from '../ledger/program-kind.ts';

/** Programs that are no model server: what they hold on a device, and who they are. */
export interface OtherHolders {
  readonly bytes: number;
  readonly heldByPid: ReadonlyMap<number, number>;
}

/**
 * What the desktop holds on a device, and jobs that were there before (`known`): a job that has come since
 * may be the very server whose load is being measured. One of those that is proven to be another model's only
 * now counts with what it held then, since nothing has moved by that; `ownPid` is the measured model's. null: the
 * driver names nobody's bytes, or its list (null) is not known; where it named some before, none are left.
 */
export function otherHolders(
  processes: readonly ProcessMemory[] | null,
  deviceId: string,
  modelPids: ReadonlySet<number>,
  known: ReadonlyMap<number, number> | null,
  ownPid: number | null,
): OtherHolders | null {
  if (processes === null) return null;
  const here = processes.filter((use) => use.deviceId === deviceId && use.bytes !== null);
  if (here.length === 0 && known === null) return null;
  const others = here.filter(
    (use) =>
      !modelPids.has(use.pid) &&
      (programKind(use) === 'desktop' || (!SERVERS.test(use.name) && (known === null || known.has(use.pid)))),
  );
  const heldByPid = new Map<number, number>();
  for (const { pid, bytes } of others) heldByPid.set(pid, (heldByPid.get(pid) ?? 0) + (bytes ?? 0));
  for (const [pid, bytes] of known ?? []) if (pid !== ownPid && modelPids.has(pid)) heldByPid.set(pid, bytes);
  return { bytes: [...heldByPid.values()].reduce((sum, bytes) => sum + bytes, 0), heldByPid };
}

/** They may load into a process that has long been there. */
const SERVERS = /(?:llama|ollama|lm.?studio|lemonade|koboldcpp|vllm|sglang|node$|electron)/i;
