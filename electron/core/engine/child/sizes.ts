import type { Llama } from 'node-llama-cpp';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { ContextRequest, ContextShape, MemoryUse } from '../engine-host.ts';

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
