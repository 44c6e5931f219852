import type { Result } from '../../../shared/errors.ts';
import type { StoredSample } from '../events/event-store.ts';
import { type DesktopLevels, desktopLevels, suggestedFloor } from '../ledger/floor-learning.ts';

/** Where the recorded history is read from. */
export interface SampleHistory {
  samples(query: {
    readonly sinceMs: number;
    readonly untilMs?: number;
    readonly deviceId?: string;
  }): Promise<Result<readonly StoredSample[]>>;
}

/** Fine rows are kept this long, and a weekend differs from a week. */
const HISTORY_MS = 48 * 3_600_000;

/** What `floor: auto` knows of each device, learned from the recorded history. */
export class LearnedFloors {
  readonly #history: SampleHistory;
  readonly #floors = new Map<string, number>();
  readonly #levels = new Map<string, DesktopLevels>();

  constructor(history: SampleHistory) {
    this.#history = history;
  }

  /** null: not enough is known of that device yet. */
  learned(deviceId: string): number | null {
    return this.#floors.get(deviceId) ?? null;
  }

  /** null: not enough is known of the desktop on that device yet. */
  levels(deviceId: string): DesktopLevels | null {
    return this.#levels.get(deviceId) ?? null;
  }

  /** Looks at the history again; a history that can't be read changes nothing. */
  async learn(devices: readonly { readonly id: string }[], epochMs: number): Promise<void> {
    for (const { id: deviceId } of devices) {
      // Rows of a clock that was set ahead, and back, lie in the future and would count for years.
      const rows = await this.#history.samples({
        sinceMs: epochMs - HISTORY_MS,
        untilMs: epochMs,
        deviceId,
      });
      if (!rows.ok) continue;
      const points = rows.value.map((row) => ({
        atMs: row.atMs,
        bytes: row.tenants[`desktop@${deviceId}`] ?? null,
      }));
      const floorBytes = suggestedFloor(points);
      if (floorBytes !== null) this.#floors.set(deviceId, floorBytes);
      const levels = desktopLevels(points);
      if (levels !== null) this.#levels.set(deviceId, levels);
    }
  }
}
