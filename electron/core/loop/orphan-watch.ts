import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { ArmedSignal } from '../actuators/reaper.ts';
import { type Orphan, orphanIdentity, orphansAmong, straysAmong } from '../backends/orphans.ts';
import type { ProcessMemory } from '../devices/sample.ts';
import type { ProcessFacts, ProcessIdentity } from '../process/identity.ts';
import type { CommandDone } from '../runtime-api.ts';
import { secrets } from '../security/secrets.ts';
import type { Offer } from './offers.ts';

/** How an orphan's proven process is held and signalled. */
export type ArmOrphan = (identity: ProcessIdentity) => Promise<Result<ArmedSignal>>;

export interface OrphanLook {
  readonly events: readonly NewEvent[];
  /** Each ends one, at a person's word. */
  readonly offers: readonly Offer[];
}

/**
 * Tells each orphan that holds device memory once, and offers to end it; it is ended only by a person (here,
 * or `landlord orphans --end`) or where the settings say so. What the driver lists without a living
 * process is told as that: nothing can be ended there.
 */
export class OrphanWatch {
  readonly #told = new Set<string>();
  readonly #arm: ArmOrphan;

  constructor(arm: ArmOrphan = async () => fail('not_supported', 'Nothing can be ended here.')) {
    this.#arm = arm;
  }

  /**
   * `servers`: processes of servers and what they started; `memory`: what processes hold of devices;
   * `present`: facts of those that are in `memory` and exist; `knownPorts`: where the backends are. null: not known.
   */
  look(
    servers: readonly ProcessFacts[],
    memory: readonly ProcessMemory[],
    present: readonly ProcessFacts[] | null = null,
    knownPorts: ReadonlySet<number> | null = null,
  ): OrphanLook {
    const events: NewEvent[] = [];
    const offers: Offer[] = [];
    const strays = knownPorts === null ? [] : straysAmong(servers, knownPorts);
    for (const orphan of [...orphansAmong(servers), ...strays]) {
      const { facts, why } = orphan;
      const heldBytes = memory
        .filter((use) => use.pid === facts.pid)
        .reduce((sum, use) => sum + (use.bytes ?? 0), 0);
      if (heldBytes === 0) continue;
      const nobody = strays.includes(orphan) ? 'belongs to nobody known here' : 'serves nobody';
      const text = `Process ${facts.pid} holds ${formatBytes(heldBytes)} and ${nobody}: ${why}.`;
      this.#tell(events, `${facts.pid} ${facts.startTimeTicks}`, {
        kind: 'orphan_found',
        reason: `${text} \`landlord orphans --end ${facts.pid}\` ends it.`,
        numbers: { pid: facts.pid, heldBytes },
      });
      if (orphanIdentity(orphan) === null) continue;
      offers.push({
        id: `orphan ${facts.pid} ${facts.startTimeTicks}`,
        text,
        label: `End process ${facts.pid}`,
        question: `End process ${facts.pid} (${secrets.hide((facts.command ?? []).slice(0, 2).join(' '))})? It is proven once more before that.`,
        run: () => this.end(orphan),
      });
    }
    for (const event of present === null ? [] : withoutProcess(memory, present))
      this.#tell(events, `row ${event.numbers.pid} ${event.deviceId}`, event);
    return { events, offers };
  }

  /** Ends one, proven anew. */
  async end(orphan: Orphan): Promise<Result<CommandDone>> {
    const { pid } = orphan.facts;
    const identity = orphanIdentity(orphan);
    if (identity === null) return fail('not_proven', `Process ${pid} can't be proven; nothing was done.`);
    const armed = await this.#arm(identity);
    if (!armed.ok) return armed;
    using signal = armed.value;
    const done = await signal.kill();
    if (!done.ok) return done;
    return ok({
      message:
        done.value.goneAfterMs === null
          ? `Process ${pid} was told to end and is still there: its driver may hold it.`
          : `Process ${pid} is gone.`,
      numbers: { pid, goneAfterMs: done.value.goneAfterMs },
    });
  }

  #tell(events: NewEvent[], key: string, event: NewEvent): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    events.push(event);
  }
}

/** A driver's rows of memory behind which nobody lives: ended and not collected, or not to be found at all. Pure. */
export function withoutProcess(
  memory: readonly ProcessMemory[],
  present: readonly ProcessFacts[],
): readonly NewEvent[] {
  return memory.flatMap((use): readonly NewEvent[] => {
    // A simulated card's programs are played by nobody.
    if (use.deviceId.startsWith('sim:') || (use.bytes ?? 0) === 0) return [];
    const facts = present.find((one) => one.pid === use.pid);
    const held = formatBytes(use.bytes);
    const base = {
      kind: 'orphan_found' as const,
      deviceId: use.deviceId,
      numbers: { pid: use.pid, heldBytes: use.bytes },
    };
    if (facts === undefined)
      return [
        {
          ...base,
          reason: `The driver lists ${held} of process ${use.pid} (${use.name}), which is not there: it runs in a container, or it has ended and the driver has not let go. Nothing can be ended here.`,
        },
      ];
    if (facts.state !== 'Z' && facts.state !== 'X') return [];
    return [
      {
        ...base,
        reason: `Process ${use.pid} (${use.name}) has ended and still counts for ${held}: process ${facts.parentPid}, which started it, has not collected it. That one has to end or be started anew.`,
      },
    ];
  });
}
