import { basename } from 'node:path';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import { formatBytes } from '../../../../shared/format.ts';
import type { LoadedModel, MemoryUse } from '../engine-host.ts';
import { type DeskModel, engineLineId, weightsLineId } from './agent.ts';
import { bookLines, refusal, refused, type WantedLine, type Yielding } from './booking.ts';
import type { DeskResult } from './desk-api.ts';
import type { DeskWorld } from './desk-world.ts';
import { Lock } from './lock.ts';

const NEVER = new AbortController().signal;
/** A load's progress is told in so many steps. */
const TOLD_STEPS = 20;

/**
 * The weights agents use: booked, then loaded, once a file (rule 1). Each failure takes back what was
 * done before it.
 */
export class Shelf {
  readonly #world: DeskWorld;
  readonly #yielding: Yielding;
  readonly #models = new Map<string, DeskModel>();
  readonly #locks = new Map<string, Lock>();
  #loads = 0;
  #ending: Promise<void> | null = null;

  constructor(world: DeskWorld, yielding: Yielding) {
    this.#world = world;
    this.#yielding = yielding;
  }

  /** The one that is known under this key, or this one from now on. */
  put(model: DeskModel): DeskModel {
    const known = this.#models.get(model.key);
    if (known !== undefined) return known;
    this.#models.set(model.key, model);
    return model;
  }

  list(): readonly DeskModel[] {
    return [...this.#models.values()];
  }

  /** What of them is in memory, by the names they have elsewhere, with whose they are. */
  holding(): readonly string[] {
    return this.list()
      .filter((model) => this.bookedBytes(model) > 0 || model.loaded !== null)
      .map((model) => `${modelName(model)} (${[...model.agents].map((agent) => agent.name).join(', ')})`);
  }

  /** Forgets one that no agent uses. */
  drop(model: DeskModel): void {
    if (model.agents.size > 0 || this.#models.get(model.key) !== model) return;
    this.#models.delete(model.key);
    this.#locks.delete(model.key);
  }

  /**
   * Booked and loaded when this resolves; at once where it is. `contextBytes`: what its agent's context
   * will take, which must fit beside it once idle ones have left. `asked`: see `bookLines`.
   */
  load(model: DeskModel, name: string, contextBytes: number, asked = true): Promise<DeskResult<void>> {
    this.#loads += 1;
    return this.#load(model, name, contextBytes, asked).finally(() => {
      this.#loads -= 1;
    });
  }

  /** With nothing loaded and nothing on its way the engine may end; a load that comes meanwhile waits for its end. */
  async endIdle(): Promise<void> {
    if (this.#loads > 0 || this.list().some((model) => model.loaded !== null)) return;
    this.#ending ??= this.#world.engineIdle().finally(() => {
      this.#ending = null;
    });
    await this.#ending;
  }

  async #load(
    model: DeskModel,
    name: string,
    contextBytes: number,
    asked: boolean,
  ): Promise<DeskResult<void>> {
    await this.#ending;
    return await this.#lock(model).run(async () => {
      const { ledger } = this.#world;
      if (model.loaded !== null) return { ok: true, value: undefined };
      const { asleep, draining, isBig } = this.#world.policy();
      if (draining)
        return refused(
          'draining',
          `Everything is being drained, so ${name} has to wait; ask again when that has ended.`,
        );
      if (asleep && isBig(model.path, model.weightsBytes + contextBytes))
        return refused(
          'big_models_asleep',
          `Big models are asleep, so ${basename(model.path)} was not loaded. \`landlord wake\` ends that.`,
        );
      const lines: WantedLine[] = [
        {
          id: weightsLineId(model),
          name: `${basename(model.path)} (weights)`,
          bytes: this.#isElsewhere(model) ? 0 : model.weightsBytes,
        },
      ];
      const engineLine = engineLineId(model.deviceId);
      if (ledger.booking(engineLine) === null)
        lines.push({ id: engineLine, name: 'the embedded engine', bytes: model.overheadBytes });
      const booked = await bookLines(
        this.#world,
        this.#yielding,
        {
          name,
          deviceId: model.deviceId,
          lines,
          laterBytes: contextBytes,
        },
        asked,
      );
      if (!booked.ok) return booked;
      const loaded = await this.#talker(model);
      if (!loaded.ok) {
        ledger.release(weightsLineId(model));
        this.#settleEngine(model.deviceId);
        this.#world.tell({
          kind: 'load_failed',
          model: modelName(model),
          backend: 'embedded',
          deviceId: model.deviceId,
          reason: `${basename(model.path)} could not be loaded for ${name}: ${loaded.error.message}`,
          numbers: loaded.error.numbers ?? {},
        });
        return refusal(loaded.error);
      }
      model.loaded = loaded.value;
      const nowMs = this.#world.clock.monotonicMs();
      const held = this.#isElsewhere(model) ? 0 : await this.#heldHere(model.deviceId, loaded.value);
      ledger.commit(weightsLineId(model), held, nowMs);
      if (ledger.booking(engineLine)?.state === 'loading') ledger.commit(engineLine, null, nowMs);
      this.#world.tell({
        kind: 'loaded',
        model: modelName(model),
        backend: 'embedded',
        deviceId: model.deviceId,
        reason: `${basename(model.path)} is loaded for ${name}: ${this.#isElsewhere(model) ? 'its weights are in the book with the model that the gateway serves' : `${formatBytes(this.bookedBytes(model))} of weights are booked, once for all agents that use it`}.`,
        numbers: { weightsBytes: this.bookedBytes(model) },
      });
      this.#world.changed();
      return { ok: true, value: undefined };
    });
  }

  /** Loaded, and one that can be talked with. */
  async #talker(model: DeskModel): Promise<Result<LoadedModel>> {
    const { path, gpuLayers } = model;
    const { host, changed } = this.#world;
    const onProgress = (share: number): void => {
      const isNews = Math.floor(share * TOLD_STEPS) !== Math.floor((model.progress ?? 0) * TOLD_STEPS);
      model.progress = share;
      if (isNews) changed();
    };
    model.progress = 0;
    changed();
    const loaded = await host.loadModel({ path, gpuLayers, onProgress }, NEVER);
    model.progress = null;
    if (!loaded.ok || loaded.value.generates) return loaded;
    await host.releaseModel(loaded.value.modelId);
    return fail(
      'not_supported',
      `${basename(path)} makes embeddings only, so no agent can talk with it. \`landlord engine add\` gives it a name for /v1/embeddings.`,
    );
  }

  /** Given back when this resolves. Its contexts have left before. */
  async unload(model: DeskModel): Promise<Result<void>> {
    return await this.#lock(model).run(async () => {
      const { loaded } = model;
      if (loaded === null) return ok(undefined);
      model.loaded = null;
      const released = await this.#world.host.releaseModel(loaded.modelId);
      this.#gone(model);
      return released.ok || released.error.code === 'engine_ended'
        ? ok(undefined)
        : fail(released.error.code, released.error.message);
    });
  }

  /** The engine that held it has ended, or another user unloaded it. */
  lose(model: DeskModel): void {
    model.loaded = null;
    this.#gone(model);
  }

  /** What the gateway serves too is in the book with that model, and with ours when it no longer does. */
  settle(): void {
    for (const model of this.#models.values()) {
      const line = this.#world.ledger.booking(weightsLineId(model));
      if (model.loaded === null || line?.state !== 'committed') continue;
      const isZero = line.measuredBytes === 0;
      if (this.#isElsewhere(model) !== isZero) void this.#commitAnew(model, !isZero);
    }
  }

  async #commitAnew(model: DeskModel, isElsewhere: boolean): Promise<void> {
    const { loaded } = model;
    if (loaded === null) return;
    const held = isElsewhere ? 0 : ((await this.#heldHere(model.deviceId, loaded)) ?? model.weightsBytes);
    if (model.loaded !== loaded || held === this.bookedBytes(model)) return;
    this.#world.ledger.commit(weightsLineId(model), held, this.#world.clock.monotonicMs());
    this.#world.changed();
  }

  /** Loaded whole, so that the engine has it once for both. */
  #isElsewhere(model: DeskModel): boolean {
    return model.gpuLayers === null && this.#world.bookedElsewhere(model.path);
  }

  bookedBytes(model: DeskModel): number {
    const line = this.#world.ledger.booking(weightsLineId(model));
    if (line === null) return 0;
    return line.state === 'committed'
      ? (line.measuredBytes ?? line.predictedBytes ?? 0)
      : (line.predictedBytes ?? 0);
  }

  /** Booked for the engine itself on a device. */
  engineBytes(deviceId: string): number {
    const line = this.#world.ledger.booking(engineLineId(deviceId));
    return line?.measuredBytes ?? line?.predictedBytes ?? 0;
  }

  #gone(model: DeskModel): void {
    this.#world.ledger.release(weightsLineId(model));
    this.#settleEngine(model.deviceId);
    this.#world.changed();
  }

  /** With the last weights the engine's own line goes. */
  #settleEngine(deviceId: string): void {
    const { ledger } = this.#world;
    const used = ledger.bookedOn(deviceId).some((line) => line.id.startsWith('agent-weights:'));
    if (!used) ledger.release(engineLineId(deviceId));
  }

  async #heldHere(deviceId: string, use: MemoryUse): Promise<number | null> {
    const device = await this.#world.device();
    return heldBytes(use, device.ok && device.value.id === deviceId ? device.value.unified : false);
  }

  #lock(model: DeskModel): Lock {
    const known = this.#locks.get(model.key);
    if (known !== undefined) return known;
    const lock = new Lock();
    this.#locks.set(model.key, lock);
    return lock;
  }
}

/** What of the engine's figures counts on a device; null: it does not tell. */
export function heldBytes(use: MemoryUse, unified: boolean): number | null {
  if (!unified) return use.deviceBytes;
  if (use.deviceBytes === null && use.hostBytes === null) return null;
  return (use.deviceBytes ?? 0) + (use.hostBytes ?? 0);
}

/** `embedded/` and the file's name without its ending. */
export function modelName(model: Pick<DeskModel, 'path'>): string {
  return `embedded/${basename(model.path).replace(/\.gguf$/i, '')}`;
}
