import type { AgentActivity, AgentState, LaneState, ModelState } from '../../../shared/state.ts';
import { type RequestRecord, tokensPerS } from '../events/request-record.ts';
import type { Flight } from '../gateway/in-flight.ts';
import type { ToIso } from './state.ts';

/** Callers that asked nothing for so long are no longer shown. */
const FORGET_MS = 3_600_000;
/** The newest are kept. */
const MOST = 64;

interface Seen {
  readonly record: RequestRecord;
  /** Monotonic ms of its end. */
  readonly endedAtMs: number;
}

export interface CallerSight {
  readonly flights: readonly Flight[];
  readonly lanes: readonly LaneState[];
  readonly models: readonly Pick<ModelState, 'id' | 'status'>[];
  readonly nowMs: number;
  readonly epochMs: number;
  readonly iso: ToIso;
}

/** Callers of the gateway that have a name, by what they ask now and what became of their last request. */
export class GatewayAgents {
  readonly #seen = new Map<string, Seen>();

  /** Called with each request that is over. */
  note(record: RequestRecord, nowMs: number): void {
    if (record.agent === null) return;
    this.#seen.delete(record.agent);
    this.#seen.set(record.agent, { record, endedAtMs: nowMs });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** By name. */
  list(sight: CallerSight): readonly AgentState[] {
    for (const [name, { endedAtMs }] of this.#seen)
      if (sight.nowMs - endedAtMs > FORGET_MS) this.#seen.delete(name);
    const names = new Set(this.#seen.keys());
    for (const flight of sight.flights) if (flight.caller !== null) names.add(flight.caller);
    return [...names].sort().map((name) => this.#state(name, sight));
  }

  #state(name: string, sight: CallerSight): AgentState {
    const last = this.#seen.get(name) ?? null;
    const flight = sight.flights.find((one) => one.caller === name) ?? null;
    const model = flight === null ? (last?.record.model ?? null) : flight.modelId;
    const backend = backendOf(model, sight) ?? (flight === null ? (last?.record.backend ?? null) : null);
    const heldSince = heldSinceEpochMs(name, backend, sight.lanes);
    return {
      id: `gateway/${name}`,
      agent: name,
      source: 'gateway',
      class: flight?.class ?? last?.record.class ?? null,
      model,
      backend,
      state: flight === null ? afterwards(last) : duringFlight(flight, heldSince !== null, backend, sight),
      since: flight !== null ? sight.iso(flight.sinceMs) : last === null ? null : sight.iso(last.endedAtMs),
      tokensPerS: last === null ? null : tokensPerS(last.record),
      tokens: last?.record.generatedTokens ?? null,
      kv: null,
      bookedBytes: null,
      deviceId: flight?.deviceId ?? null,
      lastSwitchMs: null,
      queuePosition: null,
      weightsBytes: null,
      loadProgress: null,
      laneAgeMs: heldSince === null ? null : Math.max(0, sight.epochMs - heldSince),
    };
  }
}

function afterwards(last: Seen | null): AgentActivity {
  return last?.record.route === 'fallback' ? 'deflected' : 'idle';
}

/** Where turns take a lane, who has it generates; elsewhere whoever asks a model that is there. */
function duringFlight(
  flight: Flight,
  holdsLane: boolean,
  backend: string | null,
  sight: CallerSight,
): AgentActivity {
  if (holdsLane) return 'generating';
  const hasLane = sight.lanes.some((lane) => lane.backend === backend && lane.configured);
  const status = sight.models.find((model) => model.id === flight.modelId)?.status;
  return !hasLane && (status === 'loaded' || status === 'sleeping') ? 'generating' : 'waiting';
}

function backendOf(model: string | null, sight: CallerSight): string | null {
  if (model === null || !sight.models.some((one) => one.id === model)) return null;
  return model.slice(0, model.indexOf('/'));
}

/** null: it holds no lane of that backend, as far as anyone can tell. */
function heldSinceEpochMs(name: string, backend: string | null, lanes: readonly LaneState[]): number | null {
  for (const lane of lanes) {
    if (lane.backend !== backend) continue;
    const holder = lane.holders.find((one) => one.session === name);
    if (holder !== undefined && holder.acquiredAt !== null) return Date.parse(holder.acquiredAt);
  }
  return null;
}
