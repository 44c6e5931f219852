import type {
  AgentState,
  FallbackState,
  LandlordState,
  ModelState,
  OfferState,
  ParkedState,
  TenantState,
} from '../../../shared/state.ts';
import type { Clock } from '../clock.ts';
import type { ControlLoop } from '../control-loop.ts';
import { leavesAt } from '../guards/leaves-at.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Fleet } from './fleet.ts';
import type { LaneBook } from './lanes.ts';
import { guardsFor } from './model-view.ts';
import {
  backendState,
  deviceState,
  isoClock,
  landlordState,
  modelState,
  policyState,
  type ToIso,
} from './state.ts';
import type { TenantBook } from './tenants.ts';

/** Agents as of now, given the models of this state. */
export type AgentsOf = (iso: ToIso, models: readonly ModelState[]) => readonly AgentState[];

export interface PublisherOptions {
  readonly loop: ControlLoop;
  readonly fleet: Fleet;
  readonly ledger: Ledger;
  readonly tenants: TenantBook;
  readonly lanes: LaneBook;
  readonly clock: Clock;
  readonly version: string;
  /** What the desktop usually holds of a device; null: not known. Left out: of none. */
  readonly usual?: (deviceId: string) => TenantState['usual'] | null;
  /** Conversations that wait for a model; null: none. Left out: none of any. */
  readonly parked?: (modelId: string) => ParkedState | null;
  /** Left out: none. */
  readonly fallbacks?: (iso: ToIso) => readonly FallbackState[];
  /** Left out: none. */
  readonly offers?: () => readonly OfferState[];
  /** Engine's first, by name. */
  readonly agents: AgentsOf;
  /** What a person should know first, beyond what the loop sees. */
  readonly notices: () => LandlordState['notices'];
}

/** The state others read: built when somebody looks, and told to those who listen after each step. */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #listeners = new Set<(state: LandlordState) => void>();
  #revision = 0;
  #built: LandlordState | null = null;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  state(): LandlordState {
    this.#built ??= this.#build();
    return this.#built;
  }

  onState(listener: (state: LandlordState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Something may have changed. */
  stepped(): void {
    this.#revision += 1;
    this.#built = null;
    if (this.#listeners.size === 0) return;
    const state = this.state();
    for (const listener of this.#listeners) listener(state);
  }

  #build(): LandlordState {
    const { loop, fleet, ledger, tenants, lanes, clock, version } = this.#options;
    const nowMs = clock.monotonicMs();
    const epochMs = clock.epochMs();
    const iso = isoClock(epochMs, nowMs);
    const { settings, wishes, world } = loop;
    const guardModels = new Map(world?.models.map((model) => [model.id, model]));
    const backends = fleet
      .list()
      .map(({ setting, snapshot }) =>
        backendState(snapshot, guardsFor(setting, settings, wishes.guards), setting.found, iso),
      );
    const models = loop.models.views().map((view) => {
      const guard = guardModels.get(view.id);
      const state = modelState(
        view,
        guard === undefined || world === null ? null : leavesAt(guard, world),
        iso,
      );
      const parked = this.#options.parked?.(view.id) ?? null;
      return parked === null ? state : { ...state, parked };
    });
    const offers = this.#options.offers?.() ?? [];
    const state = landlordState({
      revision: this.#revision,
      at: new Date(epochMs).toISOString(),
      version,
      devices: loop.sight.devices().flatMap((sample) => {
        const book = ledger.book(sample.id, nowMs);
        return book === null
          ? []
          : [deviceState(sample, book, loop.verdict(sample.id), loop.sight.evicting(sample.id), nowMs, iso)];
      }),
      tenants: tenants.list().map((tenant) => {
        const usual = tenant.kind === 'desktop' ? (this.#options.usual?.(tenant.deviceId) ?? null) : null;
        return usual === null ? tenant : { ...tenant, usual };
      }),
      lanes: lanes.list(),
      agents: this.#options.agents(iso, models),
      models,
      backends,
      asleep:
        wishes.sleep === null
          ? null
          : {
              since: new Date(wishes.sleep.sinceMs).toISOString(),
              until: wishes.sleep.untilMs === null ? null : new Date(wishes.sleep.untilMs).toISOString(),
            },
      policy: policyState(settings, wishes.guards, backends),
      notices: this.#options.notices(),
      restorable: wishes.restorable,
    });
    const fallbacks = this.#options.fallbacks?.(iso) ?? [];
    return {
      ...state,
      ...(fallbacks.length === 0 ? {} : { fallbacks }),
      ...(offers.length === 0 ? {} : { offers }),
    };
  }
}
