import type { ReportedEvent } from '../runtime-api.ts';
import type { GateReport } from './reports.ts';
import type { BusyTurn } from './turn.ts';

/**
 * What happened to a turn, for the log of the runtime where one runs (rule 21). A turn never waits
 * for this, and what tells it is loaded only once there is something to tell.
 */
export interface Teller {
  tell(event: ReportedEvent): void;
  /** Resolves when all is told or given up, within `TELL_LIMIT_MS` of each try; never rejects. */
  settled(): Promise<void>;
}

/** Longest time spent on one event, and so what a process that ends may stay for it. */
export const TELL_LIMIT_MS = 300;
/** `off`: nothing is told. */
export const REPORTS_VARIABLE = 'VRAM_LANDLORD_REPORTS';
/** Beyond these, what is waiting to be told is dropped: a runtime that hangs must not fill our memory. */
const MOST_WAITING = 32;

export const silent: Teller = { tell: () => undefined, settled: async () => undefined };

export interface About {
  readonly session?: string | null;
  readonly model?: string | null;
}

export function failOpenNews(report: GateReport, about: About): ReportedEvent {
  return news('fail_open', report.message, report.lane, about, {});
}

export function deflectionNews(turn: BusyTurn, about: About): ReportedEvent {
  const whose = about.session == null ? '' : ` for ${about.session.slice(0, 200)}`;
  return news('deflected', `${turn.code}${whose}: ${turn.message}`, turn.lane, about, {
    heldForMs: turn.heldForMs === null ? null : Math.round(turn.heldForMs),
    waitedMs: Math.round(turn.waitedMs),
    holderPid: turn.holder?.pid ?? null,
  });
}

/** The runtime refuses longer texts as a whole. */
function news(
  kind: ReportedEvent['kind'],
  reason: string,
  lane: string | null,
  { session, model }: About,
  numbers: ReportedEvent['numbers'],
): ReportedEvent {
  const short = (text: string | null | undefined): string | null => text?.slice(0, 200) || null;
  return { kind, reason: reason.slice(0, 1000), lane, session: short(session), model: short(model), numbers };
}

/** Tells one event after the other. What says the same while it waits is told once, with how often. */
export function createTeller(
  send: (event: ReportedEvent) => Promise<void> = sendToRuntime,
  isOff: () => boolean = () => process.env[REPORTS_VARIABLE] === 'off',
): Teller {
  const waiting = new Map<string, { readonly event: ReportedEvent; readonly times: number }>();
  let running: Promise<void> | null = null;

  const run = async (): Promise<void> => {
    // Whoever got a turn goes on first; and if that holds up this thread, the time limit starts after it.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [key, { event, times }] of waiting) {
      waiting.delete(key);
      const numbers = times === 1 ? event.numbers : { ...event.numbers, times };
      try {
        await send({ ...event, numbers });
      } catch {
        // Nobody to tell. The turn has been told itself.
      }
    }
    running = null;
  };

  return {
    tell(event) {
      if (isOff()) return;
      const key = `${event.kind} ${event.lane} ${event.session} ${event.model}`;
      const times = (waiting.get(key)?.times ?? 0) + 1;
      if (times === 1 && waiting.size >= MOST_WAITING) return;
      waiting.set(key, { event, times });
      running ??= run();
    },
    settled: async () => {
      await running;
    },
  };
}

async function sendToRuntime(event: ReportedEvent): Promise<void> {
  const { tellRuntime } = await import('./tell-runtime.ts');
  await tellRuntime(event, TELL_LIMIT_MS);
}
