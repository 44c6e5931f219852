import type { CacheType, StateRecord } from '../engine-host.ts';
import type { Agent, SavedState } from './agent.ts';

/** What is kept of an agent over a restart, as plain data. */
export interface RememberedAgent {
  readonly name: string;
  readonly class: 'interactive' | 'batch';
  readonly path: string;
  readonly deviceId: string;
  readonly gpuLayers: number | null;
  readonly weightsBytes: number;
  readonly overheadBytes: number;
  readonly contextTokens: number;
  readonly contextBytes: number;
  readonly tokens: readonly number[];
  readonly vocabulary: string | null;
  readonly saved: SavedState | null;
}

/** The part of the event store that keeps facts. */
export interface FactStore {
  all(prefix: string): Promise<Readonly<Record<string, unknown>>>;
  set(key: string, value: unknown): Promise<unknown>;
}

const PREFIX = 'agent/';

/** Agents that are to be there after a restart, with what was said. */
export class AgentMemory {
  readonly #store: FactStore;

  constructor(store: FactStore) {
    this.#store = store;
  }

  async all(): Promise<readonly RememberedAgent[]> {
    const facts = await this.#store.all(PREFIX);
    return Object.values(facts).flatMap((fact) => {
      const agent = parseRemembered(fact);
      return agent === null ? [] : [agent];
    });
  }

  keep(agent: Agent): Promise<unknown> {
    if (!agent.permanent) return Promise.resolve();
    const { name, model, contextTokens, contextBytes, tokens, vocabulary, saved } = agent;
    const remembered: RememberedAgent = {
      name,
      class: agent.class,
      path: model.path,
      deviceId: model.deviceId,
      gpuLayers: model.gpuLayers,
      weightsBytes: model.weightsBytes,
      overheadBytes: model.overheadBytes,
      contextTokens,
      contextBytes,
      tokens,
      vocabulary,
      saved,
    };
    return this.#store.set(`${PREFIX}${name}`, remembered);
  }

  forget(agent: Agent): Promise<unknown> {
    return this.#store.set(`${PREFIX}${agent.name}`, undefined);
  }
}

/** null: it is not what this program writes. */
export function parseRemembered(fact: unknown): RememberedAgent | null {
  if (!isObject(fact)) return null;
  const { name, path, deviceId, gpuLayers, weightsBytes, overheadBytes, contextTokens, contextBytes } = fact;
  if (typeof name !== 'string' || typeof path !== 'string' || typeof deviceId !== 'string') return null;
  if (gpuLayers !== null && !isCount(gpuLayers)) return null;
  if (!isCount(weightsBytes) || !isCount(overheadBytes) || !isCount(contextTokens) || !isCount(contextBytes))
    return null;
  if (!isTokens(fact.tokens)) return null;
  return {
    name,
    class: fact.class === 'batch' ? 'batch' : 'interactive',
    path,
    deviceId,
    gpuLayers,
    weightsBytes,
    overheadBytes,
    contextTokens,
    contextBytes,
    tokens: fact.tokens,
    vocabulary: typeof fact.vocabulary === 'string' ? fact.vocabulary : null,
    saved: parseSaved(fact.saved),
  };
}

function parseSaved(fact: unknown): SavedState | null {
  if (!isObject(fact) || (fact.place !== 'host' && fact.place !== 'file')) return null;
  const record = parseRecord(fact.record);
  return record === null ? null : { place: fact.place, record };
}

function parseRecord(fact: unknown): StateRecord | null {
  if (!isObject(fact)) return null;
  const { path, bytes, sha256, fingerprint, tokens, pendingToken, gpu, flashAttention } = fact;
  const { contextTokens, batchTokens, cacheTypeK, cacheTypeV, threads, gpuLayers } = fact;
  if (typeof path !== 'string' || typeof sha256 !== 'string' || typeof fingerprint !== 'string') return null;
  if (typeof gpu !== 'string' || typeof flashAttention !== 'boolean') return null;
  if (!isTokens(tokens) || (pendingToken !== null && !isCount(pendingToken))) return null;
  if (!isCount(bytes) || !isCount(contextTokens) || !isCount(batchTokens)) return null;
  if (!isCount(threads) || !isCount(gpuLayers) || !isCacheType(cacheTypeK) || !isCacheType(cacheTypeV))
    return null;
  return {
    path,
    bytes,
    sha256,
    fingerprint,
    tokens,
    pendingToken,
    contextTokens,
    batchTokens,
    flashAttention,
    cacheTypeK,
    cacheTypeV,
    threads,
    gpu,
    gpuLayers,
  };
}

const CACHE_TYPES: readonly CacheType[] = ['F16', 'F32', 'BF16', 'Q8_0', 'Q4_0'];

function isCacheType(value: unknown): value is CacheType {
  return CACHE_TYPES.some((type) => type === value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every(isCount);
}
