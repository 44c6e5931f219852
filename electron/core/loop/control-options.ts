import type { Settings } from '../../../shared/settings.ts';
import type { Effects } from '../actuators/effects.ts';
import type { Clock } from '../clock.ts';
import type { GuardDevice } from '../guards/world.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Fleet } from './fleet.ts';
import type { Intents } from './intents.ts';
import type { Journal } from './journal.ts';
import type { LaneBook } from './lanes.ts';
import type { LearnedFloors } from './learned-floors.ts';
import type { LoadWatch } from './load-watch.ts';
import type { ModelView } from './model-view.ts';
import type { TenantBook } from './tenants.ts';
import type { Wishes } from './wishes.ts';
import type { ModelUses } from './world.ts';

/** What agents of the engine hold and do not work with: contexts are back in milliseconds, weights with a request. */
export interface AgentsRoom {
  idleBytes(deviceId: string): number;
  /** Resolves with the bytes given, once a reading can show them. */
  give(deviceId: string, bytes: number, why: string): Promise<number>;
}

/** All that the control loop is made of. */
export interface ControlLoopOptions {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly journal: Journal;
  readonly intents: Intents;
  readonly tenants: TenantBook;
  readonly lanes: LaneBook;
  readonly floors: LearnedFloors;
  readonly loads: LoadWatch;
  readonly effects: Effects;
  readonly settings: Settings;
  readonly wishes: Wishes;
  /** Milliseconds since boot, time spent suspended included (CLOCK_BOOTTIME). */
  readonly bootMs: () => number;
  /** Whose requests models serve; left out: nobody's that we know of. */
  readonly uses?: ModelUses;
  /** Agents of the engine give memory back before models have to; answers what is on its way, by device. */
  readonly relieve?: (devices: readonly GuardDevice[]) => ReadonlyMap<string, number>;
  /** Asks others on a device to give memory back; resolves with the bytes that came. Left out: nobody is asked. */
  readonly guests?: (deviceId: string, why: string) => Promise<number>;
  /** Agents of the engine; left out: there are none. */
  readonly agents?: AgentsRoom;
  /** A model has just been seen loaded that was not before. */
  readonly onLoaded?: (view: ModelView) => void;
  /** Called after each step. */
  readonly onStep: () => void;
  /** Called when `wishes` has changed and is to be kept. */
  readonly onWishes: (wishes: Wishes) => void;
}
