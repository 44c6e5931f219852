import type { Settings } from '../../../shared/settings.ts';
import type { Executor } from '../actuators/executor.ts';
import type { Operation } from '../actuators/operation.ts';
import { hostAndPort, isThisMachine } from '../backends/own-address.ts';
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

const MOST_URLS = 64;

/** Every model of every backend, with what the loop itself keeps of each. */
export class Models {
  readonly #memos = new Map<string, ModelMemo>();
  readonly #here = new Map<string, boolean>();
  #views: readonly ModelView[] = [];
  #byId: ReadonlyMap<string, ModelView> = new Map();

  /** Looks at every backend anew. */
  look(input: {
    readonly backends: ReturnType<Fleet['list']>;
    readonly settings: Settings;
    readonly wishes: Wishes;
    readonly sight: Sight;
    readonly executor: Executor;
    readonly nowMs: number;
  }): readonly ModelView[] {
    const { settings, wishes, sight } = input;
    const processes = sight.processes(input.nowMs);
    const { processesAtMs } = sight;
    this.#views = input.backends.flatMap(({ setting, snapshot }) => {
      // A backend that does not answer says nothing of its models; they may hold memory all the same.
      if (snapshot.status !== 'up') return [];
      const guarded = guardsFor(setting, settings, wishes.guards);
      // What is on another machine is on no device of this one, unless the config says so.
      const isAway = setting.device === null && snapshot.url !== '' && !this.#isHere(snapshot.url);
      return snapshot.models.map((told) => {
        const id = modelId(snapshot.name, told.name);
        const model = isAway ? { ...told, isElsewhere: true } : told;
        const isElsewhere = model.isElsewhere === true && setting.device === null;
        const deviceId = isElsewhere ? null : deviceOf(model, setting.device, sight.devices(), processes);
        const free = sight.free(deviceId, input.nowMs);
        const view = viewModel({
          snapshot,
          model,
          settings,
          processes,
          processesAtMs,
          guarded,
          memo: this.memo(id),
          operation: input.executor.operation(id),
          pinnedByPerson: wishes.pins[id],
          deviceId,
          freeBytes: free.freeBytes,
          freeAtMs: free.sampledAtMs,
        });
        if (view.memo !== this.memo(id)) this.#memos.set(id, view.memo);
        return view;
      });
    });
    this.#byId = new Map(this.#views.map((view) => [view.id, view]));
    return this.#views;
  }

  /** An address is this machine's or not for as long as it has its addresses: looked up now and then. */
  #isHere(url: string): boolean {
    const known = this.#here.get(url);
    if (known !== undefined) return known;
    if (this.#here.size > MOST_URLS) this.#here.clear();
    const here = isThisMachine(hostAndPort(url).host);
    this.#here.set(url, here);
    return here;
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
