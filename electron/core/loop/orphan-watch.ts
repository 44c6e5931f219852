import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import { orphansAmong } from '../backends/orphans.ts';
import type { ProcessMemory } from '../devices/sample.ts';
import type { ProcessFacts } from '../process/identity.ts';

/** Tells each orphan that holds device memory once; it is ended only by a person (`landlord orphans --end`). */
export class OrphanWatch {
  readonly #told = new Set<string>();

  /** `servers`: processes of servers and what they started; `memory`: what processes hold of devices. */
  look(servers: readonly ProcessFacts[], memory: readonly ProcessMemory[]): readonly NewEvent[] {
    return orphansAmong(servers).flatMap(({ facts, why }) => {
      const bytes = memory
        .filter((use) => use.pid === facts.pid)
        .reduce((sum, use) => sum + (use.bytes ?? 0), 0);
      const key = `${facts.pid} ${facts.startTimeTicks}`;
      if (bytes === 0 || this.#told.has(key)) return [];
      this.#told.add(key);
      const event: NewEvent = {
        kind: 'orphan_found',
        reason: `Process ${facts.pid} holds ${formatBytes(bytes)} and serves nobody: ${why}. \`landlord orphans --end ${facts.pid}\` ends it.`,
        numbers: { pid: facts.pid, heldBytes: bytes },
      };
      return [event];
    });
  }
}
