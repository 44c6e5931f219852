import { join } from 'node:path';
import type { LiveContext, LoadedModel, StateRecord } from '../../electron/core/engine/engine-host.ts';
import { must, say, type TestEngine } from './engine.ts';

/** Numbers that look random and are the same in every run (mulberry32). */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  };
}

/** What an agent says, and how much it is answered, turn by turn. */
export interface Turn {
  readonly text: string;
  readonly tokens: number;
}

/**
 * One conversation and where its state is. A stand-in for whoever keeps conversations: it moves the
 * state as it is told to, and never reads a token twice.
 */
export class TestAgent {
  readonly said: number[] = [];
  readonly #engine: TestEngine;
  readonly #name: string;
  #context: LiveContext | null = null;
  #record: StateRecord | null = null;
  /** False: the saved state is older than what was said since. */
  #savedAll = false;
  #model: LoadedModel;

  constructor(engine: TestEngine, model: LoadedModel, name: string) {
    this.#engine = engine;
    this.#model = model;
    this.#name = name;
  }

  get context(): LiveContext | null {
    return this.#context;
  }

  get model(): LoadedModel {
    return this.#model;
  }

  async take(turn: Turn, into: LiveContext | null = null): Promise<void> {
    const context = await this.bring(into);
    const tokens = turn.text === '' ? [] : await this.#engine.tokens(this.#model, turn.text);
    const answer = await say(this.#engine.host, context.contextId, tokens, turn.tokens);
    this.said.push(...answer.tokens);
    this.#savedAll = false;
  }

  /** Its state in a context: the one it has, the one given, or a new one. */
  async bring(into: LiveContext | null = null): Promise<LiveContext> {
    if (this.#context !== null) return this.#context;
    const context = into ?? (await this.#engine.context(this.#model));
    this.#context = context;
    if (this.#record !== null) {
      must(await this.#engine.host.restoreState(context.contextId, this.#record));
      this.#savedAll = true;
    } else if (into !== null) must(await this.#engine.host.clearContext(into.contextId));
    return context;
  }

  async save(where: 'memory' | 'disk'): Promise<void> {
    if (this.#context === null || this.#savedAll) return;
    const folder = where === 'memory' ? this.#engine.memoryFolder : this.#engine.diskFolder;
    const path = join(folder, this.#name);
    this.#record = must(await this.#engine.host.saveState(this.#context.contextId, path));
    this.#savedAll = true;
  }

  /** Saves it and leaves its context to another agent of the same model. */
  async leave(where: 'memory' | 'disk'): Promise<LiveContext | null> {
    await this.save(where);
    const context = this.#context;
    this.#context = null;
    return context;
  }

  /** Saves it and gives its context's memory back. */
  async goOut(where: 'memory' | 'disk'): Promise<void> {
    const context = await this.leave(where);
    if (context !== null) must(await this.#engine.host.disposeContext(context.contextId));
  }

  /** The engine ended; the model is loaded again. */
  restarted(model: LoadedModel): void {
    this.#model = model;
    this.#context = null;
  }
}
