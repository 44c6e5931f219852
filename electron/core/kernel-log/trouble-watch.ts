import type { NewEvent } from '../../../shared/events.ts';
import { type KernelTrouble, kernelTrouble, type TroubleKind } from './trouble.ts';

/** A driver in trouble says the same a hundred times: one event for all of it within so long. */
const ONE_STORY_MS = 120_000;

const ADVICE: Readonly<Record<TroubleKind, string>> = {
  hung: 'What is on the card may not come off by itself. Draining it of models is what helps, if anything does.',
  reset: 'What was on it is gone: models have to be loaded again.',
  eviction: 'Draining the card of models gives it room again.',
  display: 'The screen may stay dark until there is room on the card: drain it of models.',
  program: 'What it was doing on the card has failed; if it hangs, end it.',
  hardware: 'Save your work: the machine may have to be started anew.',
  host: 'Models in system memory, and caches of servers, are the first to look at.',
};

/** Kinds that draining helps with. */
const DRAINABLE: ReadonlySet<TroubleKind> = new Set(['hung', 'eviction', 'display']);

export interface Told {
  readonly event: NewEvent;
  /** A drain is worth an offer. */
  readonly drains: boolean;
}

/** Lines of the kernel's log become events, one for each story. */
export class TroubleWatch {
  readonly #seen = new Map<string, number>();

  /** null: nothing new. `nameOf`: a card by its address, as people know it. */
  take(line: string, nowMs: number, nameOf: (pciAddress: string) => string | null): Told | null {
    const trouble = kernelTrouble(line);
    if (trouble === null) return null;
    const key = `${trouble.kind} ${trouble.pciAddress ?? ''} ${trouble.pid ?? ''}`;
    const before = this.#seen.get(key);
    this.#seen.set(key, nowMs);
    for (const [other, atMs] of this.#seen) if (nowMs - atMs > ONE_STORY_MS) this.#seen.delete(other);
    if (before !== undefined && nowMs - before <= ONE_STORY_MS) return null;
    return { event: eventOf(trouble, line, nameOf), drains: DRAINABLE.has(trouble.kind) };
  }
}

function eventOf(
  trouble: KernelTrouble,
  line: string,
  nameOf: (pciAddress: string) => string | null,
): NewEvent {
  const { pciAddress, kind, what } = trouble;
  const card = pciAddress === null ? null : nameOf(pciAddress);
  const where = kind === 'host' ? '' : card === null ? '' : ` on ${card}`;
  const said = line.trim().slice(0, 200);
  return {
    kind: 'driver_trouble',
    ...(pciAddress === null ? {} : { deviceId: `pci:${pciAddress}` }),
    reason: `The kernel says${where}: ${what}. ${ADVICE[kind]} (“${said}”)`,
    numbers: {
      ...(trouble.pid === null ? {} : { pid: trouble.pid }),
      ...(trouble.xid === null ? {} : { xid: trouble.xid }),
    },
  };
}
