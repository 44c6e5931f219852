import { fail, ok } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { RequestRecord } from '../events/request-record.ts';
import { instanceOf } from '../parking/conversation.ts';
import type { CommandContext } from './load-command.ts';
import type { ModelView } from './model-view.ts';
import type { Offer, Offers } from './offers.ts';
import { reloadModel } from './reload-command.ts';
import { SpeedWatch } from './speed-watch.ts';

export interface SlowWorld {
  view(modelId: string): ModelView | null;
  /** null: not known, or its reading is too old. `isEvicting`: its driver moves memory out now. */
  device(
    id: string,
  ): { readonly name: string; readonly freeBytes: number; readonly isEvicting: boolean } | null;
  tell(event: NewEvent): void;
  /** null: no more. */
  offer(modelId: string, offer: Offer | null): void;
  /** Once it is idle; false: that did not come about. */
  reload(modelId: string): Promise<boolean>;
}

/** What else comes while a model is loaded anew: it needs no more itself than it had. */
const AMPLE_BYTES = 1_000_000_000;

/** Tells once of each load that has become slow though its card has room, and offers to load it anew. */
export class SlowModels {
  readonly #world: SlowWorld;
  readonly #speeds = new SpeedWatch();
  /** By model: the load that was told. */
  readonly #told = new Map<string, string>();

  constructor(world: SlowWorld) {
    this.#world = world;
  }

  /** A request of ours is over. */
  served(record: RequestRecord): void {
    const world = this.#world;
    const view = record.model === null ? null : world.view(record.model);
    if (view === null || view.deviceId === null) return;
    const instance = instanceOf(view);
    const slow = this.#speeds.note(record, instance);
    if (slow === null || this.#told.get(view.id) === instance) return;
    const device = world.device(view.deviceId);
    // While the card is full there is nothing to be won by it; it is looked at again with the next answer.
    if (device === null || device.freeBytes < AMPLE_BYTES || device.isEvicting) return;
    this.#told.set(view.id, instance);
    const { name } = view.observed;
    const reason = `${name} answers with ${slow.nowPerS.toFixed(1)} tokens a second, and did with ${slow.beforePerS.toFixed(1)}, while ${formatBytes(device.freeBytes)} of ${device.name} is free: the driver may have moved its weights out for another program. Loading it anew brings them back.`;
    world.tell({
      kind: 'slowed',
      model: view.id,
      backend: view.backend,
      deviceId: view.deviceId,
      reason,
      numbers: { nowPerS: slow.nowPerS, beforePerS: slow.beforePerS, freeBytes: device.freeBytes },
    });
    world.offer(view.id, {
      id: `reload ${view.id}`,
      text: reason,
      label: `Load ${name} anew`,
      question: `Unload ${name} and load it again? It waits until the model is idle.`,
      run: async () =>
        (await world.reload(view.id))
          ? ok({ message: `${view.id} was loaded anew.`, models: [view.id] })
          : fail('model_busy', `${view.id} could not be loaded anew: it works, or finds no room.`),
    });
  }

  /** Takes back what is offered for a load that is over. Now and then. */
  look(): void {
    for (const [modelId, instance] of this.#told) {
      const view = this.#world.view(modelId);
      if (view !== null && view.status === 'loaded' && instanceOf(view) === instance) continue;
      this.#told.delete(modelId);
      this.#world.offer(modelId, null);
    }
  }
}

export function slowModels(context: () => CommandContext, offers: Offers): SlowModels {
  return new SlowModels({
    view: (modelId) => context().loop.models.get(modelId),
    device(id) {
      const { loop, clock } = context();
      const { freeBytes } = loop.sight.free(id, clock.monotonicMs());
      const device = loop.sight.device(id);
      if (device === null || freeBytes === null) return null;
      return { name: device.name, freeBytes, isEvicting: loop.sight.evicting(id) === true };
    },
    tell: (event) => context().journal.tell(event),
    offer: (modelId, offer) => offers.set(`slowed ${modelId}`, offer === null ? [] : [offer]),
    reload: (modelId) => reloadModel(context(), modelId, `Unloaded ${modelId}, to load it anew.`),
  });
}
