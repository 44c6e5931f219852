import type { ParkingSettings } from '../../../shared/settings.ts';
import { DEFAULT_PARKING } from '../../../shared/settings.ts';
import type { ControlLoop } from '../control-loop.ts';
import type { EventStore } from '../events/event-store.ts';
import { acquireTurn } from '../gate/acquire.ts';
import type { Gate } from '../gate/gate.ts';
import type { Fleet } from '../loop/fleet.ts';
import type { CommandContext } from '../loop/load-command.ts';
import { reloadModel } from '../loop/reload-command.ts';
import { Parking } from './parking.ts';
import { makeSlotFolder } from './slot-folder.ts';

/** Parking over the real runtime. What an earlier run kept is taken up by `open`, which its caller awaits. */
export function parkingFor(options: {
  readonly context: () => CommandContext;
  readonly gate: Gate;
  readonly store: Pick<EventStore, 'set' | 'all'>;
  /** Whether a request of ours is with that model, or waits for it. */
  readonly isWanted: (modelId: string) => boolean;
  readonly changed: () => void;
}): Parking {
  const { context, gate, store } = options;
  const backendOf = (modelId: string): string => modelId.slice(0, modelId.indexOf('/'));
  return new Parking({
    view: (modelId) => context().loop.models.get(modelId),
    slots: (modelId) => context().fleet.get(backendOf(modelId))?.slots ?? null,
    settings: (): ParkingSettings => context().loop.settings.parking ?? DEFAULT_PARKING,
    store,
    tell: (event) => context().journal.tell(event),
    epochMs: () => context().clock.epochMs(),
    changed: options.changed,
    restart: (modelId) =>
      reloadModel(context(), modelId, `Unloaded ${modelId}, whose conversation could not be brought back.`),
    async lane(view) {
      const setting = context().fleet.setting(view.backend);
      // A request of ours waits for the conversation itself, before it wants the lane.
      if (setting === null || setting.lanes === null || options.isWanted(view.id)) return null;
      const turn = await acquireTurn(gate, setting.url, {
        model: view.observed.name,
        session: 'vram-landlord: bringing a conversation back',
        class: 'interactive',
        waitMs: 0,
        reports: false,
      });
      return turn.kind === 'held' ? turn : null;
    },
  });
}

/** Makes the folder that servers of ours are told of, and takes up what is in it; a sentence where there is none. */
export async function openParking(
  parking: Parking,
  folder: string,
  isKnown: boolean,
): Promise<string | null> {
  const objection = makeSlotFolder(folder);
  await parking.open(folder, isKnown);
  return objection;
}

/** The end of everything does not wait longer for the sake of a prompt. */
const LAST_LIMIT_MS = 5_000;

/** Servers that are ours end with us: what their models have read is saved before, for the next run. */
export async function parkOwn(fleet: Fleet, loop: ControlLoop, parking: Parking): Promise<void> {
  const ours = new Set(fleet.settings().flatMap(({ name, command }) => (command === null ? [] : [name])));
  const ending = loop.models.views().filter((view) => ours.has(view.backend) && view.status === 'loaded');
  await Promise.all(ending.map((view) => parking.park(view.id, LAST_LIMIT_MS)));
}
