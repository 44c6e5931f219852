import type { Llama } from 'node-llama-cpp';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { CacheType, ContextRequest, ContextShape, MemoryUse } from '../engine-host.ts';

/** llama.cpp takes sizes past any memory at their word, and aborts on some devices: they are bounded before it is asked. */
const LEAST_CONTEXT = 32;
const MOST_CONTEXT = 1 << 24;
const LEAST_BATCH = 32;
const MOST_BATCH = 4096;
const CPU_BATCH = 128;
const GPU_BATCH = 512;

export type Sizes = Pick<
  ContextShape,
  'contextTokens' | 'batchTokens' | 'flashAttention' | 'cacheTypeK' | 'cacheTypeV'
>;

/** The request with its defaults filled in. Errors: `bad_input`. */
export function sizesOf(
  request: ContextRequest,
  model: { readonly gpu: string; readonly flashAttentionSupported: boolean },
): Result<Sizes> {
  const { contextTokens, cacheTypeK = 'F16', cacheTypeV = 'F16' } = request;
  if (!within(contextTokens, LEAST_CONTEXT, MOST_CONTEXT)) {
    return fail('bad_input', `A context has ${LEAST_CONTEXT} to ${MOST_CONTEXT} tokens.`, { contextTokens });
  }
  const batchTokens = request.batchTokens ?? (model.gpu === 'cpu' ? CPU_BATCH : GPU_BATCH);
  if (!within(batchTokens, LEAST_BATCH, MOST_BATCH)) {
    return fail('bad_input', `A batch has ${LEAST_BATCH} to ${MOST_BATCH} tokens.`, { batchTokens });
  }
  if (request.flashAttention === true && !model.flashAttentionSupported) {
    return fail('bad_input', 'This model has no flash attention; leave it out.');
  }
  const flashAttention = request.flashAttention ?? model.flashAttentionSupported;
  if (!flashAttention && cacheTypeV !== 'F16' && cacheTypeV !== 'F32' && cacheTypeV !== 'BF16') {
    return fail('bad_input', `V in ${cacheTypeV} needs flash attention; take F16 for it.`);
  }
  return ok({ contextTokens, batchTokens, flashAttention, cacheTypeK, cacheTypeV });
}

function within(value: number, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}

/** Bytes of one element; the quantised types hold 32 of them in a block (ggml's ggml-common.h). */
const ELEMENT_BYTES: Readonly<Record<CacheType, number>> = {
  F32: 4,
  F16: 2,
  BF16: 2,
  Q8_0: 34 / 32,
  Q4_0: 18 / 32,
};

/** What of a model's header sets how wide its cache is; null: not told. */
export interface CacheWidth {
  readonly kvHeads: number | readonly number[] | null;
  readonly heads: number | readonly number[] | null;
  readonly keyLength: number | null;
  readonly valueLength: number | null;
  readonly embeddingLength: number | null;
}

/** The larger of K and V of the widest layer; null: the header does not tell. */
export function largestCacheTensorBytes(width: CacheWidth, sizes: Sizes): number | null {
  const heads = most(width.heads);
  const kvHeads = most(width.kvHeads) ?? heads;
  if (heads === null || kvHeads === null) return null;
  const plain = width.embeddingLength === null ? null : width.embeddingLength / heads;
  const key = width.keyLength ?? plain;
  const value = width.valueLength ?? plain;
  if (key === null || value === null) return null;
  const { contextTokens, cacheTypeK, cacheTypeV } = sizes;
  return Math.ceil(
    contextTokens * kvHeads * Math.max(key * ELEMENT_BYTES[cacheTypeK], value * ELEMENT_BYTES[cacheTypeV]),
  );
}

function most(value: number | readonly number[] | null): number | null {
  if (value === null || typeof value === 'number') return value;
  return value.length === 0 ? null : Math.max(...value);
}

/**
 * Vulkan binds a tensor as one storage buffer (maxStorageBufferRange): 4 GiB − 1 on graphics cards, 128 MiB
 * in Mesa's software device. llama.cpp aborts on one that is larger, already when it is asked for an estimate.
 */
export function mostTensorBytes(gpu: string, devices: readonly string[]): number {
  if (gpu !== 'vulkan') return Number.POSITIVE_INFINITY;
  return devices.some((name) => /llvmpipe|lavapipe|swiftshader/i.test(name)) ? 128 * 2 ** 20 : 2 ** 32 - 1;
}

/** Whether memory has room for it now. Errors: `engine_out_of_memory`, with the figures. */
export async function roomFor(llama: Llama, needs: MemoryUse): Promise<Result<null>> {
  const hostFreeBytes = process.availableMemory();
  if (needs.hostBytes !== null && needs.hostBytes > hostFreeBytes) {
    return tooMuch('main memory', needs.hostBytes, hostFreeBytes);
  }
  if (needs.deviceBytes !== null && needs.deviceBytes > 0) {
    const { free } = await llama.getVramState();
    if (needs.deviceBytes > free) return tooMuch('the device', needs.deviceBytes, free);
  }
  return ok(null);
}

function tooMuch(where: string, requestedBytes: number, freeBytes: number): Result<never> {
  return fail(
    'engine_out_of_memory',
    `The context needs more than is free in ${where}. Take a smaller one, or unload another model.`,
    { requestedBytes, freeBytes },
  );
}
