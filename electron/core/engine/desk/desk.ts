import type { AgentState } from '../../../../shared/state.ts';
import type { ToIso } from '../../loop/state.ts';
import { type Agent, contextLineId, type DeskModel, newAgent, weightsLineId } from './agent.ts';
import { AgentMemory, type FactStore } from './agent-memory.ts';
import { agentState, deviceLine } from './agent-states.ts';
import { checkLater, refusal, refused, roomBytes } from './booking.ts';
import type {
  AgentDesk,
  AgentLine,
  DecodeAnswer,
  DecodeRequest,
  DeskResult,
  DeviceLine,
  RegisterRequest,
} from './desk-api.ts';
import type { DeskDevice, DeskWorld } from './desk-world.ts';
import { Lock } from './lock.ts';
import { type AgentSize, fittingSize, sizeOfAgent } from './measure-agent.ts';
import { Relief } from './relief.ts';
import { Seats } from './seats.ts';
import { Shelf } from './shelf.ts';
import type { StateFiles } from './state-files.ts';
import { type TurnLimits, Turns } from './turns.ts';

export interface DeskOptions {
  readonly world: DeskWorld;
  readonly files: StateFiles;
  readonly store: FactStore;
  /** As they are now. */
  readonly limits?: () => Partial<TurnLimits>;
}

const DEFAULT_LIMITS: TurnLimits = {
  tokens: 64,
  promptTokens: 4_096,
  atOnce: 1,
  ahead: true,
};

/** The agents of the embedded engine: who they are, what they hold, and what they ask. */
export class EngineDesk implements AgentDesk {
  readonly #world: DeskWorld;
  readonly #files: StateFiles;
  readonly #memory: AgentMemory;
  readonly #agents = new Map<string, Agent>();
  /** Their models are being loaded; they are nobody's yet. */
  readonly #joining = new Set<Agent>();
  readonly #names = new Map<string, Lock>();
  readonly #seats: Seats;
  readonly #shelf: Shelf;
  readonly #turns: Turns;
  readonly #undo: readonly (() => void)[];
  readonly relief: Relief;
  #stopping = false;

  constructor(options: DeskOptions) {
    const { world, files } = options;
    this.#world = world;
    this.#files = files;
    this.#memory = new AgentMemory(options.store);
    this.#seats = new Seats(
      world,
      files,
      () => [...this.#agents.values()],
      (agent) => this.#turns.placeOf(agent),
    );
    this.#shelf = new Shelf(world, this.#seats);
    this.#turns = new Turns({
      world,
      seats: this.#seats,
      shelf: this.#shelf,
      limits: () => ({ ...DEFAULT_LIMITS, ...options.limits?.() }),
      said: (agent) => void this.#memory.keep(agent),
    });
    this.relief = new Relief({
      world,
      seats: this.#seats,
      shelf: this.#shelf,
      isUsed: (agent) => agent.busy || this.#turns.isUsed(agent),
      moved: (agent) => void this.#memory.keep(agent),
    });
    this.#undo = [
      world.host.onEnded((why) => this.#engineEnded(why)),
      world.host.onUnloading((modelId) => this.#unloading(modelId)),
    ];
  }

  /**
   * Agents of an earlier run are registered again; nothing of them is loaded until they ask. `isKnown`: what is
   * remembered of them could be read.
   */
  async open(isKnown: boolean): Promise<void> {
    const remembered = await this.#memory.all();
    const saved = remembered.flatMap((one) => (one.saved === null ? [] : [one.saved]));
    // Else nobody knows whose states these are, and all stay for a later run.
    if (isKnown) await this.#files.open(saved);
    for (const one of remembered) {
      const agent = this.#newAgent(one.name, one.class, this.#model(one.path, one.deviceId, one), one);
      agent.permanent = true;
      agent.tokens = [...one.tokens];
      agent.vocabulary = one.vocabulary;
      agent.saved = one.saved !== null && this.#files.has(one.saved) ? one.saved : null;
      agent.model.agents.add(agent);
      this.#agents.set(agent.name, agent);
    }
  }

  register(request: RegisterRequest, signal: AbortSignal): Promise<DeskResult<AgentLine>> {
    return this.#named(request.agent, () => this.#register(request, signal));
  }

  unregister(name: string): Promise<DeskResult<{ readonly releasedBytes: number }>> {
    return this.#named(name, async () => {
      const agent = this.#agents.get(name);
      if (agent === undefined)
        return refused('bad_input', `No agent ${name} is registered: LIST shows those that are.`);
      return { ok: true, value: { releasedBytes: await this.#remove(agent) } };
    });
  }

  async released(holder: object): Promise<void> {
    for (const agent of [...this.#agents.values()]) {
      if (!agent.holders.delete(holder)) continue;
      await this.#named(agent.name, async () => {
        if (agent.holders.size === 0 && !agent.permanent) await this.#remove(agent);
      });
    }
  }

  async decode(request: DecodeRequest, signal: AbortSignal): Promise<DeskResult<DecodeAnswer>> {
    const agent = this.#agents.get(request.agent);
    if (agent === undefined)
      return refused(
        'bad_input',
        `No agent ${request.agent} is registered: REGISTER ${request.agent}<TAB>/path/to/model.gguf first.`,
      );
    if (this.#stopping) return refused('cancelled', 'VRAM Landlord is being stopped.');
    if (this.#world.policy().draining)
      return refused('draining', 'Everything is being drained; ask again when that has ended.');
    return await this.#turns.decode(agent, request.prompt, request.maxTokens, signal);
  }

  /** Its memory goes, and comes back with its next request; null: there is no such agent. Errors: `model_busy`. */
  async putAway(name: string, force: boolean): Promise<DeskResult<{ readonly freedBytes: number }> | null> {
    const agent = this.#agents.get(name);
    if (agent === undefined) return null;
    if (this.#turns.isUsed(agent)) {
      if (!force)
        return refused(
          'model_busy',
          `${name} is at its turn or waits for one, so it was left where it is. Add --force to end its request; what was said is kept.`,
        );
      await this.#turns.cancel(agent);
    }
    return { ok: true, value: { freedBytes: await this.relief.putAway(agent, 'somebody asked for it') } };
  }

  /** Weights that came to be served by the gateway too, or no longer are, are booked once. */
  settle(): void {
    this.#shelf.settle();
  }

  list(): readonly AgentLine[] {
    return [...this.#agents.values()].map((agent) => this.#line(agent));
  }

  status(): readonly DeviceLine[] {
    const agents = [...this.#agents.values()];
    return this.#world.devices().map((deviceId) => deviceLine(this.#world, agents, deviceId));
  }

  /** Models that agents hold memory with, by what they are called elsewhere, with who is at work. */
  holding(): readonly string[] {
    return this.#shelf.holding();
  }

  /** For the state others read. */
  states(iso: ToIso): readonly AgentState[] {
    return [...this.#agents.values(), ...this.#joining]
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .map((agent) =>
        agentState(agent, {
          place: this.#turns.placeOf(agent),
          bookedBytes: this.#seats.bookedBytes(agent),
          weightsBytes: this.#shelf.bookedBytes(agent.model),
          iso,
        }),
      );
  }

  /** Conversations are kept; contexts are saved to files as far as there is room. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const agents = [...this.#agents.values()];
    await Promise.all(agents.map((agent) => this.#turns.cancel(agent)));
    for (const undo of this.#undo) undo();
    for (const agent of agents) {
      if (!agent.permanent) continue;
      await this.#seats.leave(agent, null);
      if (agent.saved?.place === 'host') agent.saved = await this.#files.toFile(agent.name, agent.saved);
      await this.#memory.keep(agent);
    }
    await this.#files.close();
  }

  /** Who comes and goes under one name does so one after the other. */
  #named<T>(name: string, work: () => Promise<T>): Promise<T> {
    const lock = this.#names.get(name) ?? new Lock();
    this.#names.set(name, lock);
    return lock.run(work).finally(() => {
      if (lock.isFree) this.#names.delete(name);
    });
  }

  async #register(request: RegisterRequest, signal: AbortSignal): Promise<DeskResult<AgentLine>> {
    const { agent: name } = request;
    if (this.#stopping) return refused('cancelled', 'VRAM Landlord is being stopped.');
    const path = await this.#world.realPath(request.path);
    if (path === null)
      return refused('bad_model_file', `There is no file ${request.path}: nothing is there, or a pipe.`);
    const known = this.#agents.get(name);
    if (known !== undefined) return this.#again(known, path, request, signal);
    const device = await this.#world.device();
    if (!device.ok) return refusal(device.error);
    const size = await sizeOfAgent(this.#world, device.value, path, request.contextTokens);
    if (!size.ok) return refusal(size.error);
    const first = await this.#admit(request, path, device.value, size.value, signal);
    if (first.ok || first.error.denial === null || !request.fit) return first;
    const room = roomBytes(this.#world, this.#seats, device.value.id);
    const less = await fittingSize(this.#world, device.value, path, size.value.contextTokens, room);
    return less === null ? first : await this.#admit(request, path, device.value, less, signal);
  }

  #again(agent: Agent, path: string, request: RegisterRequest, signal: AbortSignal): DeskResult<AgentLine> {
    if (agent.model.path !== path)
      return refused(
        'bad_input',
        `${agent.name} is registered with ${agent.model.path} already: UNREGISTER it first, or take another name.`,
      );
    const { contextTokens } = request;
    if (contextTokens !== null && contextTokens !== agent.contextTokens)
      return refused(
        'bad_input',
        `${agent.name} is registered with a context of ${agent.contextTokens} tokens already: UNREGISTER it first, or leave context= out.`,
      );
    agent.class = request.class ?? agent.class;
    if (request.holder === null) agent.permanent = true;
    else if (!signal.aborted) agent.holders.add(request.holder);
    void this.#memory.keep(agent);
    return { ok: true, value: this.#line(agent) };
  }

  /** Book, load, remember; what fails undoes what came before it. */
  async #admit(
    request: RegisterRequest,
    path: string,
    device: DeskDevice,
    size: AgentSize,
    signal: AbortSignal,
  ): Promise<DeskResult<AgentLine>> {
    const { agent: name, holder } = request;
    const model = this.#model(path, device.id, size);
    const agent = this.#newAgent(name, request.class ?? this.#world.classOf(name), model, size);
    agent.permanent = holder === null;
    if (holder !== null) agent.holders.add(holder);
    model.agents.add(agent);
    this.#joining.add(agent);
    const loaded = await this.#loadWithSeat(agent);
    this.#joining.delete(agent);
    const isLeft = holder !== null && signal.aborted;
    if (!loaded.ok || isLeft || this.#stopping) {
      await this.#putBack(agent);
      if (!loaded.ok) return loaded;
      return refused(
        'cancelled',
        `${name} was not registered: ${isLeft ? 'whoever asked has left' : 'VRAM Landlord is being stopped'}.`,
      );
    }
    this.#agents.set(name, agent);
    await this.#memory.keep(agent);
    this.#world.changed();
    return { ok: true, value: this.#line(agent) };
  }

  /** Its weights are loaded, and its context would fit beside them. */
  async #loadWithSeat(agent: Agent): Promise<DeskResult<void>> {
    const { model, name, contextBytes } = agent;
    // Whoever loads them asks for its context too; who finds them there, or waits beside, asks after it.
    const isFirst = model.loaded === null && model.agents.size === 1;
    if (model.loaded === null) {
      const loaded = await this.#shelf.load(model, name, contextBytes);
      if (!loaded.ok || isFirst) return loaded;
    }
    return checkLater(this.#world, this.#seats, {
      name,
      deviceId: model.deviceId,
      lines: [{ id: contextLineId(`${name}?`), name, bytes: 0 }],
      laterBytes: contextBytes,
    });
  }

  async #remove(agent: Agent): Promise<number> {
    if (this.#agents.get(agent.name) !== agent) return 0;
    // Weights that others use stay.
    const weights = agent.model.agents.size > 1 ? 0 : this.#shelf.bookedBytes(agent.model);
    const releasedBytes = this.#seats.bookedBytes(agent) + weights;
    // From here on nobody asks anything of it: a request that came while the last one ends would bring it back.
    this.#agents.delete(agent.name);
    await this.#turns.cancel(agent);
    await this.#seats.forget(agent);
    await this.#memory.forget(agent);
    await this.#putBack(agent);
    this.#world.changed();
    return releasedBytes;
  }

  async #putBack(agent: Agent): Promise<void> {
    const { model } = agent;
    model.agents.delete(agent);
    if (model.agents.size > 0) return;
    await this.#shelf.unload(model);
    this.#shelf.drop(model);
    await this.#shelf.endIdle();
  }

  #model(
    path: string,
    deviceId: string,
    size: Pick<AgentSize, 'gpuLayers' | 'weightsBytes' | 'overheadBytes'>,
  ): DeskModel {
    // Whoever comes second takes what is loaded, with whatever layers.
    const there = this.#shelf.list().find((model) => model.path === path && model.deviceId === deviceId);
    if (there !== undefined) return there;
    const { gpuLayers, weightsBytes, overheadBytes } = size;
    return this.#shelf.put({
      key: `${deviceId}:${path}`,
      path,
      deviceId,
      gpuLayers,
      weightsBytes,
      overheadBytes,
      loaded: null,
      progress: null,
      agents: new Set(),
    });
  }

  #newAgent(
    name: string,
    agentClass: Agent['class'],
    model: DeskModel,
    size: Pick<AgentSize, 'contextTokens' | 'contextBytes'>,
  ): Agent {
    return newAgent({ name, class: agentClass, model, ...size }, this.#world.clock.monotonicMs());
  }

  #line(agent: Agent): AgentLine {
    const { model } = agent;
    const first = [...this.#agents.values()].find((one) => one.model === model);
    const weights = first === undefined || first === agent ? this.#shelf.bookedBytes(model) : 0;
    return {
      agent: agent.name,
      path: model.path,
      bookedBytes: this.#seats.bookedBytes(agent) + weights,
      kv: agent.live !== null ? 'device' : (agent.saved?.place ?? 'none'),
      contextTokens: agent.contextTokens,
      gpuLayers: model.gpuLayers,
    };
  }

  #engineEnded(why: string): void {
    const lost = [...this.#agents.values()].filter((agent) => agent.live !== null).map((agent) => agent.name);
    const models = this.#shelf
      .list()
      .filter((model) => this.#world.ledger.booking(weightsLineId(model)) !== null);
    for (const agent of this.#agents.values()) this.#seats.lose(agent);
    for (const model of models) if (model.loaded !== null) this.#shelf.lose(model);
    if (models.length === 0) return;
    this.#world.tell({
      kind: 'model_crashed',
      backend: 'embedded',
      reason: `The embedded engine ended: ${why}. Its memory is given back and its agents stay registered${lost.length === 0 ? '' : `; ${lost.join(', ')} ${lost.length === 1 ? 'goes' : 'go'} on from what was said with the next request`}.`,
      numbers: { models: models.length, contexts: lost.length },
    });
    this.#world.changed();
  }

  /** Somebody else unloads a model of agents: their states are saved first. */
  async #unloading(modelId: string): Promise<void> {
    const model = this.#shelf.list().find((one) => one.loaded?.modelId === modelId);
    if (model === undefined) return;
    for (const agent of model.agents) await this.#seats.leave(agent, 'its model is being unloaded');
    for (const agent of model.agents) this.#seats.lose(agent);
    this.#shelf.lose(model);
  }
}
