import type { BackendSetting } from '../../../shared/settings.ts';
import type { Clock } from '../clock.ts';
import { lanesOfBackend } from '../gate/backend-lanes.ts';
import type { ReportedEvent } from '../runtime-api.ts';
import type { Journal } from './journal.ts';

/** What is still out of order by then is worth another word. */
const SAME_TROUBLE_MS = 600_000;
const MOST_REMEMBERED = 256;

type Log = Pick<Journal, 'tell' | 'committed'>;

/**
 * What other processes of ours report, on its way into the log. Every deflection is told; a gate that
 * is out of order is told once and not by each of the processes that meet it (rule 17).
 */
export class ReportDesk {
  readonly #journal: Log;
  readonly #backends: () => readonly BackendSetting[];
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #troubles = new Map<string, number>();

  constructor(journal: Log, backends: () => readonly BackendSetting[], clock: Pick<Clock, 'monotonicMs'>) {
    this.#journal = journal;
    this.#backends = backends;
    this.#clock = clock;
  }

  /** Resolves when it is in the log. */
  async take(event: ReportedEvent): Promise<void> {
    if (event.kind === 'fail_open' && this.#known(`${event.lane} ${event.reason}`)) return;
    const backend = this.#backendOf(event.lane);
    this.#journal.tell({
      kind: event.kind,
      reason: event.reason,
      numbers: event.numbers,
      ...(backend === null ? {} : { backend }),
      ...(backend === null || event.model === null ? {} : { model: `${backend}/${event.model}` }),
      ...(event.session === null ? {} : { session: event.session }),
    });
    await this.#journal.committed();
  }

  #known(trouble: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const toldAtMs = this.#troubles.get(trouble);
    if (toldAtMs !== undefined && nowMs - toldAtMs < SAME_TROUBLE_MS) return true;
    this.#troubles.delete(trouble);
    const [oldest] = this.#troubles.keys();
    if (oldest !== undefined && this.#troubles.size >= MOST_REMEMBERED) this.#troubles.delete(oldest);
    this.#troubles.set(trouble, nowMs);
    return false;
  }

  #backendOf(lane: string | null): string | null {
    if (lane === null) return null;
    return this.#backends().find((backend) => lanesOfBackend(backend).includes(lane))?.name ?? null;
  }
}
