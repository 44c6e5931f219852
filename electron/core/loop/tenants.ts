import type { TenantState } from '../../../shared/state.ts';
import type { EventStore } from '../events/event-store.ts';
import { attribute, type EngineProcess, type ProcessRef } from '../ledger/attribution.ts';
import { type GrowthMemory, growthSentence, look, mostGrown, noGrowth } from '../ledger/growth.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { holdsMemory, type ModelView } from './model-view.ts';
import type { Sight } from './sight.ts';

/** Who grew is asked over this long: a breach is told after 5 s, and what caused it began before. */
const GROWTH_WINDOW_MS = 30_000;

const SERVERS = /^(llama|ollama)/;

/** Who holds what on each device, as of the last look, and who has been growing. */
export class TenantBook {
  #tenants: readonly TenantState[] = [];
  readonly #growth = new Map<string, GrowthMemory>();
  readonly #holders: () => ReadonlyMap<string, readonly ProcessRef[]>;
  readonly #engine: () => EngineProcess | null;
  #lookedAtMs = 0;

  /** `holders`: the processes of jobs, by the id of their line in the ledger; `engine`: the one agents live in. */
  constructor(
    holders: () => ReadonlyMap<string, readonly ProcessRef[]> = () => new Map(),
    engine: () => EngineProcess | null = () => null,
  ) {
    this.#holders = holders;
    this.#engine = engine;
  }

  look(sight: Sight, views: readonly ModelView[], ledger: Ledger, nowMs: number): void {
    const processes = sight.processes(nowMs);
    const named = sight.processesAtMs !== null;
    // What a load takes was admitted, or is a race; only what grows after it is anybody's growth.
    const young = new Set(
      views
        .filter((view) => view.status !== 'loaded' || nowMs - view.observed.sinceMs < GROWTH_WINDOW_MS)
        .map((view) => view.id),
    );
    const loadingNow = views.some((view) => young.has(view.id) && holdsMemory(view.observed.status));
    // The process of a model that has only just begun is not proven yet, and looks foreign so long.
    const mayThreaten = (tenant: TenantState): boolean =>
      !young.has(tenant.id) && !(loadingNow && tenant.kind === 'foreign' && SERVERS.test(tenant.name));
    const models = views
      .filter((view) => holdsMemory(view.observed.status))
      .map((view) => ({
        id: view.id,
        deviceId: view.deviceId,
        processes: view.observed.process === null ? [] : [view.observed.process],
        predictedBytes: view.predictedBytes,
        measuredBytes: view.measuredBytes,
      }));
    const holders = this.#holders();
    const engine = this.#engine();
    this.#tenants = sight.devices().flatMap((sample) => {
      const bookings = ledger.bookedOn(sample.id);
      const tenants = attribute({
        sample,
        processes,
        models,
        bookings,
        holders,
        ...(engine === null ? {} : { engine }),
      });
      // Before processes were read once, everybody would seem to have come from nothing.
      if (!named) return tenants;
      this.#growth.set(
        sample.id,
        look(this.#growth.get(sample.id) ?? noGrowth(), tenants.filter(mayThreaten), nowMs),
      );
      return tenants;
    });
    this.#lookedAtMs = nowMs;
  }

  list(): readonly TenantState[] {
    return this.#tenants;
  }

  /** What the desktop holds of a device; null: unknown. */
  desktopBytes(deviceId: string): number | null {
    const desktop = this.#tenants.find((tenant) => tenant.kind === 'desktop' && tenant.deviceId === deviceId);
    return desktop?.measuredBytes ?? null;
  }

  /** `firefox grew by 0.9 GB`; null: nobody stands out. */
  whoGrew(deviceId: string): string | null {
    const memory = this.#growth.get(deviceId);
    return memory === undefined
      ? null
      : growthSentence(mostGrown(memory, this.#lookedAtMs, GROWTH_WINDOW_MS));
  }

  /** Bytes by tenant, for the history chart, and which models were used since the last record. */
  record(sight: Sight, store: EventStore, epochMs: number, used: readonly string[] = []): void {
    store.addSamples(
      sight.devices().map((sample) => ({
        atMs: epochMs,
        deviceId: sample.id,
        totalBytes: sample.totalBytes,
        usedBytes: sample.usedBytes,
        freeBytes: sample.freeBytes,
        gttUsedBytes: sample.gttUsedBytes,
        tenants: Object.fromEntries(
          this.#tenants
            .filter((tenant) => tenant.deviceId === sample.id)
            .map((tenant) => [tenant.id, tenant.measuredBytes]),
        ),
        used: used.filter((id) => this.#tenants.some((one) => one.id === id && one.deviceId === sample.id)),
      })),
    );
  }
}
