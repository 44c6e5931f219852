import type { LandlordEvent, NewEvent } from '../../../shared/events.ts';
import { isStale } from '../devices/sample.ts';
import type { DeviceVerdict } from '../guards/world.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { deviceEvents, type ToldDevice } from './device-events.ts';
import type { Sight } from './sight.ts';
import type { TenantBook } from './tenants.ts';
import type { Wishes } from './wishes.ts';

export interface DeviceLookInput {
  readonly sight: Sight;
  readonly ledger: Ledger;
  readonly tenants: TenantBook;
  readonly verdict: (deviceId: string) => DeviceVerdict | null;
  readonly nowMs: number;
}

/** Remembers what was told of each device, so that each crossing is told once. */
export class DeviceTeller {
  readonly #told = new Map<string, ToldDevice>();

  /** Other devices are looked at from now on; those of before are no news. */
  forget(): void {
    this.#told.clear();
  }

  /** `changing`: a device's state has just begun to differ from what was told, so a closer look is worth it. */
  look(input: DeviceLookInput): { readonly events: readonly NewEvent[]; readonly changing: boolean } {
    const { sight, ledger, tenants, nowMs } = input;
    const events: NewEvent[] = [];
    const seen = new Set<string>();
    let changing = false;
    for (const sample of sight.devices()) {
      const book = ledger.book(sample.id, nowMs);
      if (book === null) continue;
      seen.add(sample.id);
      const result = deviceEvents(this.#told.get(sample.id), {
        sample,
        book,
        verdict: input.verdict(sample.id),
        evictionUnderWay: sight.evicting(sample.id),
        stale: isStale(sample, nowMs),
        growth: tenants.whoGrew(sample.id),
        nowMs,
      });
      this.#told.set(sample.id, result.told);
      events.push(...result.events);
      changing ||= result.told.differsSinceMs === nowMs;
    }
    return { events: [...events, ...this.#gone(seen, sight)], changing };
  }

  #gone(seen: ReadonlySet<string>, sight: Sight): readonly NewEvent[] {
    if (!sight.seen) return [];
    return [...this.#told]
      .filter(([id, told]) => !seen.has(id) && !told.lost)
      .map(([id, told]) => {
        this.#told.set(id, { ...told, lost: true });
        return {
          kind: 'device_lost',
          deviceId: id,
          reason: `The device ${id} is gone from this machine. No guard acts on it.`,
          numbers: {},
        };
      });
  }
}

/** Wishes whose time is up at `epochMs`, as the change to make and what to tell; null: none. */
export function expired(
  wishes: Wishes,
  epochMs: number,
): { readonly change: Partial<Wishes>; readonly events: readonly Omit<LandlordEvent, 'id' | 'at'>[] } | null {
  const { sleep, guards } = wishes;
  const sleepOver = sleep !== null && sleep.untilMs !== null && sleep.untilMs <= epochMs;
  const pauseOver = guards !== null && guards.pausedUntilMs !== null && guards.pausedUntilMs <= epochMs;
  if (!sleepOver && !pauseOver) return null;
  const events: NewEvent[] = [];
  if (sleepOver)
    events.push({
      kind: 'woke',
      reason: 'Big-model sleep is over: its time is up.',
      numbers: { asleepMs: epochMs - sleep.sinceMs },
    });
  if (pauseOver)
    events.push({ kind: 'guards_changed', reason: 'The guards are back after their pause.', numbers: {} });
  return {
    change: {
      ...(sleepOver ? { sleep: null } : {}),
      ...(pauseOver ? { guards: { ...guards, pausedUntilMs: null } } : {}),
    },
    events,
  };
}
