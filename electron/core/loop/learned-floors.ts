import type { Result } from '../../../shared/errors.ts';
import type { Settings } from '../../../shared/settings.ts';
import type { StoredSample } from '../events/event-store.ts';
import { suggestedFloor } from '../ledger/floor-learning.ts';

/** Where the recorded history is read from. */
export interface SampleHistory {
  samples(query: {
    readonly sinceMs: number;
    readonly deviceId?: string;
  }): Promise<Result<readonly StoredSample[]>>;
}

/** Fine rows are kept this long, and a weekend differs from a week. */
const HISTORY_MS = 48 * 3_600_000;

/** What `floor: auto` knows of each device, learned from the recorded history. */
export class LearnedFloors {
  readonly #history: SampleHistory;
  readonly #floors = new Map<string, number>();

  constructor(history: SampleHistory) {
    this.#history = history;
  }

  /** null: not enough is known of that device yet. */
  learned(deviceId: string): number | null {
    return this.#floors.get(deviceId) ?? null;
  }

  /** Looks at the history again; a history that can't be read changes nothing. */
  async learn(deviceIds: readonly string[], epochMs: number): Promise<void> {
    for (const deviceId of deviceIds) {
      const rows = await this.#history.samples({ sinceMs: epochMs - HISTORY_MS, deviceId });
      if (!rows.ok) continue;
      const points = rows.value.map((row) => ({
        atMs: row.atMs,
        bytes: row.tenants[`desktop@${deviceId}`] ?? null,
      }));
      const floorBytes = suggestedFloor(points);
      if (floorBytes !== null) this.#floors.set(deviceId, floorBytes);
    }
  }
}

/** Whether any floor is to be learned from the desktop. */
export function learnsFloor(settings: Settings): boolean {
  const floors = [settings.floor, ...(settings.devices ?? []).map((device) => device.floor)];
  return floors.some((floor) => floor?.keep === 'auto');
}
