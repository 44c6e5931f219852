import type { Settings } from '../../../shared/settings.ts';
import type { Executor } from '../actuators/executor.ts';
import type { Operation } from '../actuators/operation.ts';
import type { Fleet } from './fleet.ts';
import {
  deviceOf,
  EMPTY_MEMO,
  guardsFor,
  type ModelMemo,
  type ModelView,
  modelId,
  viewModel,
} from './model-view.ts';
import type { Sight } from './sight.ts';
import type { Wishes } from './wishes.ts';

/** Every model of every backend, with what the loop itself keeps of each. */
export class Models {
  readonly #memos = new Map<string, ModelMemo>();
  #views: readonly ModelView[] = [];
  #byId: ReadonlyMap<string, ModelView> = new Map();

  /** Looks at every backend anew. */
  look(input: {
    readonly fleet: Fleet;
    readonly settings: Settings;
    readonly wishes: Wishes;
    readonly sight: Sight;
    readonly executor: Executor;
    readonly nowMs: number;
  }): readonly ModelView[] {
    const { settings, wishes, sight } = input;
    const processes = sight.processes(input.nowMs);
    this.#views = input.fleet.list().flatMap(({ setting, snapshot }) => {
      // A backend that does not answer says nothing of its models; they may hold memory all the same.
      if (snapshot.status !== 'up') return [];
      const guarded = guardsFor(setting, settings, wishes.guards);
      return snapshot.models.map((model) => {
        const id = modelId(snapshot.name, model.name);
        const deviceId = deviceOf(model, setting.device, sight.devices(), processes);
        return viewModel({
          snapshot,
          model,
          settings,
          processes,
          guarded,
          memo: this.memo(id),
          operation: input.executor.operation(id),
          pinnedByPerson: wishes.pins[id],
          deviceId,
          freeBytes: sight.free(deviceId, input.nowMs).freeBytes,
        });
      });
    });
    this.#byId = new Map(this.#views.map((view) => [view.id, view]));
    return this.#views;
  }

  views(): readonly ModelView[] {
    return this.#views;
  }

  get(id: string): ModelView | null {
    return this.#byId.get(id) ?? null;
  }

  /** Nothing else loads or leaves on that device, so that its free figure speaks of this model alone. */
  undisturbed(deviceId: string | null, modelId: string, operations: readonly Operation[]): boolean {
    const leaves = operations.some((other) => other.modelId !== modelId && other.deviceId === deviceId);
    const loads = (view: ModelView): boolean =>
      view.id !== modelId && view.deviceId === deviceId && view.status === 'loading';
    return !leaves && !this.#views.some(loads);
  }

  memo(id: string): ModelMemo {
    return this.#memos.get(id) ?? EMPTY_MEMO;
  }

  remember(id: string, change: Partial<ModelMemo>): void {
    this.#memos.set(id, { ...this.memo(id), ...change });
  }
}
