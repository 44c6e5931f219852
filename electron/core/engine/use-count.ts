/** Which models are asked something now. */
export class UseCount {
  readonly #listeners = new Set<(modelId: string, busy: boolean) => void>();
  readonly #modelOf = new Map<string, string>();
  readonly #running = new Map<string, number>();

  contextOf(contextId: string, modelId: string): void {
    this.#modelOf.set(contextId, modelId);
  }

  forget(contextId: string): void {
    this.#modelOf.delete(contextId);
  }

  /** Its contexts are gone with it. */
  forgetModel(modelId: string): void {
    for (const [contextId, of] of this.#modelOf) if (of === modelId) this.#modelOf.delete(contextId);
  }

  /** `id`: of a context or a model. */
  async during<T>(id: string, work: () => Promise<T>): Promise<T> {
    const modelId = this.#modelOf.get(id) ?? id;
    const before = this.#running.get(modelId) ?? 0;
    this.#running.set(modelId, before + 1);
    if (before === 0) this.#tell(modelId, true);
    try {
      return await work();
    } finally {
      const left = (this.#running.get(modelId) ?? 1) - 1;
      if (left > 0) this.#running.set(modelId, left);
      else {
        this.#running.delete(modelId);
        this.#tell(modelId, false);
      }
    }
  }

  isBusy(modelId: string): boolean {
    return this.#running.has(modelId);
  }

  /** Called when a model begins to be busy, and when it has become idle. Returns its own undo. */
  onChange(listener: (modelId: string, busy: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(modelId: string, busy: boolean): void {
    for (const listener of this.#listeners) listener(modelId, busy);
  }
}
