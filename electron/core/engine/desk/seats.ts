import { ok, type Result } from '../../../../shared/errors.ts';
import { formatBytes } from '../../../../shared/format.ts';
import type { LiveContext } from '../engine-host.ts';
import { type Agent, contextLineId, coveredTokens } from './agent.ts';
import { bookLines, refusal, refused, type Yielding } from './booking.ts';
import type { DeskResult } from './desk-api.ts';
import type { DeskWorld } from './desk-world.ts';
import { Lock } from './lock.ts';
import { saveSomewhere } from './saved-states.ts';
import { heldBytes, modelName } from './shelf.ts';
import type { StateFiles } from './state-files.ts';

/** What it took to bring an agent's context back. */
export interface Switch {
  readonly tookMs: number;
  readonly evicted: readonly string[];
  readonly restored: boolean;
}

/** An agent's place in the queue, from 0; Infinity: it waits for nothing, and gives its context first. */
export type PlaceOf = (agent: Agent) => number;

/**
 * Live contexts, one an agent at most, as many as the ledger admits. Past that the least recently used
 * idle one makes way: its state is saved, and where the newcomer is of the same model it moves into the
 * very context (making one is what costs).
 */
export class Seats implements Yielding {
  readonly #world: DeskWorld;
  readonly #files: StateFiles;
  readonly #agents: () => readonly Agent[];
  readonly #placeOf: PlaceOf;
  /** One context is made, moved or given up at a time. */
  readonly #moves = new Lock();
  /** Moves that wait for models to leave: contexts on these leave beside them, or neither would come to an end. */
  #waiting = 0;

  constructor(world: DeskWorld, files: StateFiles, agents: () => readonly Agent[], placeOf: PlaceOf) {
    this.#world = world;
    this.#files = files;
    this.#agents = agents;
    this.#placeOf = placeOf;
  }

  contextBytes(deviceId: string): number {
    return this.#liveOn(deviceId).reduce((sum, agent) => sum + this.bookedBytes(agent), 0);
  }

  idleBytes(deviceId: string): number {
    return this.#liveOn(deviceId)
      .filter((agent) => !agent.busy)
      .reduce((sum, agent) => sum + this.bookedBytes(agent), 0);
  }

  bookedBytes(agent: Agent): number {
    const line = this.#world.ledger.booking(contextLineId(agent.name));
    return line === null ? 0 : (line.measuredBytes ?? line.predictedBytes ?? 0);
  }

  /** Room for weights is being made: called without the lock of moves. */
  yieldOne(deviceId: string, forWhom: string): Promise<boolean> {
    return this.#moves.run(() => this.#yieldOne(deviceId, [], forWhom, `${forWhom} needs the room`));
  }

  /**
   * The agent's context is live when this resolves, and holds what it can of the conversation. Its
   * weights are loaded, and it is `busy`, so that nobody takes it.
   */
  seat(agent: Agent, asked = true): Promise<DeskResult<Switch>> {
    return this.#moves.run(async () => {
      const { prepared } = agent;
      agent.prepared = null;
      if (agent.live !== null)
        return {
          ok: true,
          value: { tookMs: 0, evicted: prepared?.evicted ?? [], restored: prepared?.restored ?? false },
        };
      return await this.#seat(agent, Number.NEGATIVE_INFINITY, asked);
    });
  }

  /**
   * Makes the context of the next in the queue ready while another decodes, where the ledger has room or
   * somebody gives it who comes later. What fails is done again when it is its turn.
   */
  prepare(agent: Agent): Promise<void> {
    return this.#moves.run(async () => {
      if (agent.live !== null || agent.busy || agent.model.loaded === null) return;
      const done = await this.#seat(agent, this.#placeOf(agent), false);
      if (done.ok) agent.prepared = done.value;
    });
  }

  /** Moves an idle agent's context out of the device; false: it has none, or is in use. */
  leave(agent: Agent, reason: string | null): Promise<boolean> {
    return this.#waiting > 0 ? this.#leave(agent, reason) : this.#moves.run(() => this.#leave(agent, reason));
  }

  /** Its context and its saved state go, for good. */
  forget(agent: Agent): Promise<void> {
    return this.#moves.run(async () => {
      if (agent.saved !== null) await this.#files.remove(agent.saved);
      agent.saved = null;
      await this.#dispose(agent);
    });
  }

  /** What its context holds is no longer what was said: it goes unsaved, and is read anew. */
  drop(agent: Agent): Promise<void> {
    return this.#moves.run(async () => {
      await this.#dispose(agent);
      this.#world.changed();
    });
  }

  /** The engine that held it has ended. */
  lose(agent: Agent): void {
    if (agent.live === null) return;
    agent.live = null;
    agent.heldTokens = 0;
    this.#world.ledger.release(contextLineId(agent.name));
    this.#world.changed();
  }

  /** `place`: only contexts of those who come later may be taken; a turn's own come before all. */
  async #seat(agent: Agent, place: number, asked: boolean): Promise<DeskResult<Switch>> {
    const startedAtMs = this.#world.clock.monotonicMs();
    const evicted: string[] = [];
    const done = (restored: boolean): DeskResult<Switch> => ({
      ok: true,
      value: { tookMs: this.#world.clock.monotonicMs() - startedAtMs, evicted, restored },
    });
    const live = await this.#contextFor(agent, place, evicted, asked);
    if (!live.ok) return live;
    agent.live = live.value;
    agent.heldTokens = 0;
    this.#world.changed();
    const saved = agent.saved;
    const covered = saved === null ? null : coveredTokens(saved.record, agent.tokens);
    if (saved === null || covered === null) return done(false);
    const restored = await this.#world.host.restoreState(live.value.contextId, saved.record);
    if (restored.ok) {
      agent.heldTokens = covered;
      return done(true);
    }
    if (restored.error.code === 'engine_ended') return refusal(restored.error);
    // It can't be used again: what it held is read anew.
    await this.#files.remove(saved);
    agent.saved = null;
    return done(false);
  }

  #liveOn(deviceId: string): readonly Agent[] {
    return this.#agents().filter((agent) => agent.live !== null && agent.model.deviceId === deviceId);
  }

  /** Idle and after this place in the queue: who waits for nothing first, then who comes last; the least recently used first. */
  #victims(deviceId: string, place: number): readonly Agent[] {
    return this.#liveOn(deviceId)
      .filter((agent) => !agent.busy && this.#placeOf(agent) > place)
      .sort((one, other) => {
        const [first, second] = [this.#placeOf(one), this.#placeOf(other)];
        return first === second ? one.lastUsedAtMs - other.lastUsedAtMs : first > second ? -1 : 1;
      });
  }

  async #contextFor(
    agent: Agent,
    place: number,
    evicted: string[],
    asked: boolean,
  ): Promise<DeskResult<LiveContext>> {
    const { ledger, clock, host } = this.#world;
    const { deviceId, loaded } = agent.model;
    if (loaded === null) return refused('engine_ended', 'The engine ended meanwhile; ask again.');
    const line = { id: contextLineId(agent.name), name: agent.name, bytes: agent.contextBytes };
    const first = ledger.reserve({
      id: line.id,
      kind: 'agent',
      name: line.name,
      deviceId,
      predictedBytes: line.bytes,
      nowMs: clock.monotonicMs(),
    });
    if (!first.ok) {
      const taken = await this.#takeOver(agent, place, evicted);
      if (taken !== null) return { ok: true, value: taken };
      const yielding: Yielding = {
        contextBytes: (id) => this.contextBytes(id),
        idleBytes: (id) => this.#victims(id, place).reduce((sum, one) => sum + this.bookedBytes(one), 0),
        yieldOne: (id, name) => this.#yieldOne(id, evicted, name, null, place),
      };
      const wish = { name: agent.name, deviceId, lines: [line], laterBytes: 0 };
      const booked = await bookLines({ ...this.#world, makeRoom: this.#makeRoom }, yielding, wish, asked);
      if (!booked.ok) return booked;
    }
    const made = await host.createContext({ modelId: loaded.modelId, contextTokens: agent.contextTokens });
    if (!made.ok) {
      ledger.release(line.id);
      return refusal(made.error);
    }
    await this.#commit(agent, made.value);
    return { ok: true, value: made.value };
  }

  readonly #makeRoom: DeskWorld['makeRoom'] = async (wish) => {
    this.#waiting += 1;
    try {
      return await this.#world.makeRoom(wish);
    } finally {
      this.#waiting -= 1;
    }
  };

  /** The context of an idle agent of the same model and size, emptied; null: there is none. */
  async #takeOver(agent: Agent, place: number, evicted: string[]): Promise<LiveContext | null> {
    const victim = this.#victims(agent.model.deviceId, place).find(
      (one) => one.model === agent.model && one.contextTokens === agent.contextTokens,
    );
    const context = victim?.live ?? null;
    if (victim === undefined || context === null) return null;
    await this.#save(victim);
    const cleared = await this.#world.host.clearContext(context.contextId);
    // Meanwhile the engine may have ended, and the context with it.
    if (!cleared.ok || victim.live !== context) return null;
    victim.live = null;
    victim.heldTokens = 0;
    evicted.push(victim.name);
    const { ledger, clock } = this.#world;
    ledger.release(contextLineId(victim.name));
    ledger.reserve({
      id: contextLineId(agent.name),
      kind: 'agent',
      name: agent.name,
      deviceId: agent.model.deviceId,
      predictedBytes: agent.contextBytes,
      // The memory is there already: it only changes hands.
      forced: true,
      nowMs: clock.monotonicMs(),
    });
    await this.#commit(agent, context);
    return context;
  }

  async #commit(agent: Agent, context: LiveContext): Promise<void> {
    const { ledger, clock, device } = this.#world;
    const chosen = await device();
    const unified = chosen.ok && chosen.value.id === agent.model.deviceId && chosen.value.unified;
    ledger.commit(contextLineId(agent.name), heldBytes(context, unified), clock.monotonicMs());
  }

  async #yieldOne(
    deviceId: string,
    evicted: string[],
    forWhom: string,
    reason: string | null,
    place = Number.NEGATIVE_INFINITY,
  ): Promise<boolean> {
    const victim = this.#victims(deviceId, place).find((agent) => agent.name !== forWhom);
    if (victim === undefined || !(await this.#leave(victim, reason))) return false;
    evicted.push(victim.name);
    return true;
  }

  async #leave(agent: Agent, reason: string | null): Promise<boolean> {
    if (agent.live === null || agent.busy) return false;
    const bytes = this.bookedBytes(agent);
    await this.#save(agent);
    await this.#dispose(agent);
    // What moves from turn to turn is told in the answers.
    if (reason !== null) this.#tellMoved(agent, bytes, reason);
    this.#world.changed();
    return true;
  }

  async #save(agent: Agent): Promise<void> {
    const context = agent.live;
    if (context === null || agent.heldTokens === 0) return;
    const kept = agent.saved;
    if (kept !== null && coveredTokens(kept.record, agent.tokens) === agent.heldTokens) return;
    agent.saved = await saveSomewhere(this.#files, agent, this.#agents(), (path) =>
      this.#world.host.saveState(context.contextId, path),
    );
  }

  async #dispose(agent: Agent): Promise<Result<void>> {
    const context = agent.live;
    agent.live = null;
    agent.heldTokens = 0;
    if (context !== null) await this.#world.host.disposeContext(context.contextId);
    this.#world.ledger.release(contextLineId(agent.name));
    return ok(undefined);
  }

  #tellMoved(agent: Agent, bytes: number, why: string): void {
    const where =
      agent.saved === null
        ? 'there was no room for its state, which is read anew from its tokens when it is its turn'
        : `its state waits in ${agent.saved.place === 'host' ? 'host memory' : 'a file'} (${formatBytes(agent.saved.record.bytes)})`;
    this.#world.tell({
      kind: 'evicted',
      model: modelName(agent.model),
      backend: 'embedded',
      session: agent.name,
      deviceId: agent.model.deviceId,
      reason: `The context of ${agent.name} left the device (${formatBytes(bytes)}): ${why}; ${where}.`,
      numbers: { freedBytes: bytes, stateBytes: agent.saved?.record.bytes ?? null },
    });
  }
}
