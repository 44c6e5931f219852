import type { NewEvent } from '../../../shared/events.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { EventStore } from '../events/event-store.ts';
import { laneSetups, type ModelsOf } from '../gate/backend-lanes.ts';
import type { Gate } from '../gate/gate.ts';
import { setUpLane } from '../gate/lane-setup.ts';
import type { ModelView } from './model-view.ts';

const KEY = 'lanes set up';

/** The lanes whose files we have written, so that they can be taken back once the config drops them. */
interface Written {
  readonly root: string;
  readonly names: readonly string[];
}

/**
 * Writes what the config says of lanes where every process looks, and takes back what it no longer
 * says. Where it says nothing, nothing is made, not even the folder.
 */
export class LaneWriter {
  readonly #gate: Pick<Gate, 'plan' | 'root'>;
  readonly #journal: { tell(event: NewEvent): void };
  readonly #store: Pick<EventStore, 'get' | 'set'>;
  /** Troubles that stand, each told once. */
  #troubles: ReadonlySet<string> = new Set();
  #written: Written | null;
  #followed: { readonly backends: unknown; readonly views: unknown } | null = null;
  #names = '';

  private constructor(
    gate: Pick<Gate, 'plan' | 'root'>,
    journal: { tell(event: NewEvent): void },
    store: Pick<EventStore, 'get' | 'set'>,
    written: Written | null,
  ) {
    this.#gate = gate;
    this.#journal = journal;
    this.#store = store;
    this.#written = written;
  }

  static async create(
    gate: Pick<Gate, 'plan' | 'root'>,
    journal: { tell(event: NewEvent): void },
    store: Pick<EventStore, 'get' | 'set'>,
  ): Promise<LaneWriter> {
    return new LaneWriter(gate, journal, store, parseWritten(await store.get(KEY)));
  }

  /** Any number of times: what is there already is left alone. `backends` null: the config names none. */
  write(backends: readonly BackendSetting[] | null, modelsOf?: ModelsOf): void {
    if (modelsOf === undefined) {
      this.#followed = null;
      this.#names = '';
    }
    const setups = laneSetups(backends ?? [], undefined, modelsOf);
    const before = this.#written;
    if (setups.length === 0 && before === null) return;
    const troubles = new Map<string, string | null>();
    const root = this.#gate.root();
    const closed = setups.length === 0 ? null : this.#closed(setups[0]?.name ?? '');
    if (closed !== null) troubles.set(closed, null);
    else if (root !== null) {
      const shared = root.from === 'machine-wide';
      const dropped = before?.root === root.path ? before.names : [];
      for (const name of dropped.filter((one) => setups.every((setup) => setup.name !== one))) {
        setUpLane(root.path, { name, width: 1, means: null }, shared);
      }
      for (const setup of setups) {
        const done = setUpLane(root.path, setup, shared);
        if (!done.ok) troubles.set(done.error.message, setup.name);
      }
      this.#remember(setups.length === 0 ? null : { root: root.path, names: setups.map((one) => one.name) });
    }
    this.#tell(troubles, backends ?? []);
  }

  /** Lanes for each model follow the models: the same two lists change nothing. */
  follow(
    backends: readonly BackendSetting[],
    views: readonly Pick<ModelView, 'backend' | 'observed'>[],
  ): void {
    if (!backends.some((backend) => backend.lane === 'model' && !backend.found)) return;
    if (this.#followed?.backends === backends && this.#followed.views === views) return;
    this.#followed = { backends, views };
    const names = modelNames(views);
    const text = JSON.stringify([...names]);
    if (text === this.#names) return;
    this.#names = text;
    this.write(backends, (backend) => names.get(backend) ?? []);
  }

  /** Something stands in the way, which has been told. */
  get troubled(): boolean {
    return this.#troubles.size > 0;
  }

  /** Why turns go on without their lanes here, such as a home on a network; null: they do not. */
  #closed(lane: string): string | null {
    const plan = this.#gate.plan(`http://${lane.replace('_', ':')}`, null);
    return plan.kind === 'open' ? plan.message : null;
  }

  #remember(written: Written | null): void {
    if (JSON.stringify(written) === JSON.stringify(this.#written)) return;
    this.#written = written;
    void this.#store.set(KEY, written);
  }

  #tell(troubles: ReadonlyMap<string, string | null>, backends: readonly BackendSetting[]): void {
    for (const [reason, lane] of troubles) {
      if (this.#troubles.has(reason)) continue;
      const backend = backends.find(
        (one) => lane !== null && laneSetups([one]).some(({ name }) => name === lane),
      );
      this.#journal.tell({
        kind: 'fail_open',
        reason,
        numbers: {},
        ...(backend === undefined ? {} : { backend: backend.name }),
      });
    }
    this.#troubles = new Set(troubles.keys());
  }
}

/** By backend, under all names a request may give them. */
function modelNames(
  views: readonly Pick<ModelView, 'backend' | 'observed'>[],
): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, readonly string[]>();
  for (const { backend, observed } of views)
    names.set(backend, [...(names.get(backend) ?? []), observed.name]);
  return names;
}

function parseWritten(value: unknown): Written | null {
  if (typeof value !== 'object' || value === null) return null;
  const { root, names }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof root !== 'string' || !Array.isArray(names)) return null;
  return { root, names: names.filter((name): name is string => typeof name === 'string') };
}
