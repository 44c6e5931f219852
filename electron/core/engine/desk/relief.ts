import { formatBytes } from '../../../../shared/format.ts';
import type { Agent, DeskModel } from './agent.ts';
import type { DeskWorld } from './desk-world.ts';
import type { Seats } from './seats.ts';
import { modelName, type Shelf } from './shelf.ts';

export interface ReliefOptions {
  readonly world: DeskWorld;
  readonly seats: Seats;
  readonly shelf: Shelf;
  readonly isUsed: (agent: Agent) => boolean;
  /** Where its state is has changed. */
  readonly moved: (agent: Agent) => void;
}

interface Giving {
  readonly bytes: number;
  readonly done: Promise<number>;
  /** Monotonic ms; null: under way. */
  doneAtMs: number | null;
}

/** A device that tells nothing new for so long shows what was given back, or never will. */
const SHOWN_AFTER_MS = 5_000;

/**
 * Gives device memory back for others: idle contexts first, which costs milliseconds, then the weights
 * of models none of whose agents is at work. What an agent needs comes back when it next asks.
 */
export class Relief {
  readonly #options: ReliefOptions;
  readonly #under = new Map<string, Giving>();

  constructor(options: ReliefOptions) {
    this.#options = options;
  }

  /** Bytes that are on their way back, or that the device's last reading can't show yet. */
  comingBytes(deviceId: string, sampledAtMs: number | null): number {
    const under = this.#under.get(deviceId);
    if (under === undefined) return 0;
    const { doneAtMs } = under;
    const nowMs = this.#options.world.clock.monotonicMs();
    if (doneAtMs === null || ((sampledAtMs ?? 0) <= doneAtMs && nowMs - doneAtMs < SHOWN_AFTER_MS))
      return under.bytes;
    this.#under.delete(deviceId);
    return 0;
  }

  /** What could be given back at once. */
  idleBytes(deviceId: string): number {
    const { seats, shelf } = this.#options;
    const idle = this.#idleModels(deviceId);
    const weights = idle.reduce((sum, model) => sum + shelf.bookedBytes(model), 0);
    const loaded = shelf.list().filter((model) => model.deviceId === deviceId && model.loaded !== null);
    // With the last weights what the engine takes itself is given back too.
    const engine = idle.length > 0 && idle.length === loaded.length ? shelf.engineBytes(deviceId) : 0;
    return seats.idleBytes(deviceId) + weights + engine;
  }

  /** At least so many bytes, or all that is idle; resolves with what was given back. One at a time a device. */
  give(deviceId: string, bytes: number, reason: string): Promise<number> {
    const under = this.#under.get(deviceId);
    if (under !== undefined && under.doneAtMs === null) return under.done;
    const expected = Math.min(bytes, this.idleBytes(deviceId));
    if (expected <= 0) return Promise.resolve(0);
    return this.#note(deviceId, expected, this.#give(deviceId, bytes, reason));
  }

  /** Weights that this says of, with the contexts on them. */
  giveModels(
    deviceId: string,
    isMeant: (path: string, bytes: number) => boolean,
    reason: string,
  ): Promise<number> {
    const { shelf, seats } = this.#options;
    const under = this.#under.get(deviceId);
    if (under !== undefined && under.doneAtMs === null) return under.done;
    const all = (model: DeskModel): number =>
      shelf.bookedBytes(model) + [...model.agents].reduce((sum, agent) => sum + seats.bookedBytes(agent), 0);
    const meant = this.#idleModels(deviceId).filter((model) => isMeant(model.path, all(model)));
    if (meant.length === 0) return Promise.resolve(0);
    const expected = meant.reduce((sum, model) => sum + all(model), 0);
    return this.#note(deviceId, expected, this.#giveWhole(meant, reason));
  }

  /** One agent's context, and its weights where no other agent uses them; resolves with the bytes given back. */
  async putAway(agent: Agent, reason: string): Promise<number> {
    const { seats, shelf, moved } = this.#options;
    const held = seats.bookedBytes(agent);
    const left = await seats.leave(agent, reason);
    if (left) moved(agent);
    const given = (left ? held : 0) + (await this.#unload(agent.model, reason));
    if (given > 0) await shelf.endIdle();
    return given;
  }

  #note(deviceId: string, bytes: number, done: Promise<number>): Promise<number> {
    const giving: Giving = { bytes, done, doneAtMs: null };
    this.#under.set(deviceId, giving);
    return done.finally(() => {
      giving.doneAtMs = this.#options.world.clock.monotonicMs();
    });
  }

  async #giveWhole(models: readonly DeskModel[], reason: string): Promise<number> {
    const { seats, moved, shelf } = this.#options;
    let given = 0;
    for (const model of models) {
      for (const agent of model.agents) {
        const held = seats.bookedBytes(agent);
        if (agent.live === null || !(await seats.leave(agent, reason))) continue;
        given += held;
        moved(agent);
      }
      given += await this.#unload(model, reason);
    }
    if (given > 0) await shelf.endIdle();
    return given;
  }

  async #give(deviceId: string, bytes: number, reason: string): Promise<number> {
    const { seats, shelf, moved } = this.#options;
    let given = 0;
    const engineBytes = shelf.engineBytes(deviceId);
    const contexts = this.#agents(deviceId)
      .filter((agent) => agent.live !== null && !this.#options.isUsed(agent))
      .sort((one, other) => one.lastUsedAtMs - other.lastUsedAtMs);
    for (const agent of contexts) {
      if (given >= bytes) return given;
      const held = seats.bookedBytes(agent);
      if (await seats.leave(agent, reason)) {
        given += held;
        moved(agent);
      }
    }
    for (const model of this.#idleModels(deviceId)) {
      if (given >= bytes) break;
      given += await this.#unload(model, reason);
    }
    if (given > 0) await shelf.endIdle();
    return given + engineBytes - shelf.engineBytes(deviceId);
  }

  async #unload(model: DeskModel, reason: string): Promise<number> {
    const { shelf, world } = this.#options;
    if ([...model.agents].some((agent) => this.#options.isUsed(agent) || agent.live !== null)) return 0;
    const bytes = shelf.bookedBytes(model);
    const unloaded = await shelf.unload(model);
    if (!unloaded.ok) return 0;
    // With the model that the gateway serves they stay.
    if (bytes === 0) return 0;
    const names = [...model.agents].map((agent) => agent.name).join(', ');
    world.tell({
      kind: 'evicted',
      model: modelName(model),
      backend: 'embedded',
      deviceId: model.deviceId,
      reason: `The weights that ${names} ${model.agents.size === 1 ? 'uses' : 'use'} left the device (${formatBytes(bytes)}): ${reason}. They are loaded again with the next request.`,
      numbers: { freedBytes: bytes },
    });
    return bytes;
  }

  #agents(deviceId: string): readonly Agent[] {
    return this.#options.shelf
      .list()
      .filter((model) => model.deviceId === deviceId)
      .flatMap((model) => [...model.agents]);
  }

  #idleModels(deviceId: string): readonly DeskModel[] {
    const lastUse = (model: DeskModel): number =>
      Math.max(0, ...[...model.agents].map((agent) => agent.lastUsedAtMs));
    return this.#options.shelf
      .list()
      .filter((model) => model.deviceId === deviceId && model.loaded !== null)
      .filter((model) => ![...model.agents].some((agent) => this.#options.isUsed(agent)))
      .sort((one, other) => lastUse(one) - lastUse(other));
  }
}
