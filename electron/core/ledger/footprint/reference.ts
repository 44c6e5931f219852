import { factsOf, type ModelFacts } from './architecture.ts';
import { FEW_OUTPUTS_BUILD } from './compute.ts';
import { estimate, type Footprint } from './estimate.ts';
import { DEFAULT_FLAGS, type LoadFlags, slotsOf } from './flags.ts';
import { ggmlTypeNamed } from './ggml-types.ts';
import type { GgufHeader } from './gguf-header.ts';
import { NO_LATENT_VALUES_BUILD } from './kv-cache.ts';

/**
 * llama.cpp's own figure as the reference for our arithmetic: node-llama-cpp's V2 estimate runs it
 * without allocating. It can not be asked for everything (one cache for several slots, devices, drafts,
 * adapters), so the nearest load that it can be asked for is compared with our arithmetic for that very
 * load, and what differs is carried over to the load that is meant.
 */
export interface ReferenceQuestion {
  /** Of each sequence. */
  readonly contextTokens: number;
  readonly sequences: number;
  /** Tokens evaluated at once; the second is the least that can be asked for, which leaves caches almost alone. */
  readonly ubatches: readonly [number, number];
  readonly flashAttention: boolean | 'auto';
  /** ggml's numbers of the types. */
  readonly typeK: number;
  readonly typeV: number;
  readonly fullWindowCache: boolean;
}

/** Bytes, all in host memory: nothing of a device is touched. */
export interface ReferenceAnswer {
  readonly weightsBytes: number;
  /** Caches, states and compute buffers with each of the two batches. */
  readonly contextBytes: readonly [number, number];
  /** `node-llama-cpp 3.21.1`. */
  readonly engine: string;
}

const MIB = 1_048_576;
/** Both are as good as the same where they differ by no more: rounding to whole pages and buffers. */
const AGREE = { bytes: 65_536, share: 0.002 };
/** The least compute buffer is in every figure for caches, and known to about as much of itself. */
const SMALL_COMPUTE_SHARE = 1.5;
/** Of weights: another version may leave a tensor out, or keep a copy. */
const AGREE_WEIGHTS = { bytes: MIB, share: 0.005 };
/** llama.cpp's compute buffers change between versions by about as much. */
const COMPUTE_SLACK = { share: 0.1, bytes: 32 * 1_048_576 };
/** More could not be counted in the 32 bits that llama.cpp has for it. */
const MOST_TOKENS = 2 ** 31 - 1;

/** null: nothing near to it can be asked for. */
export function referenceQuestion(facts: ModelFacts, flags: LoadFlags): ReferenceQuestion | null {
  const typeK = ggmlTypeNamed(flags.cacheTypeK);
  const typeV = ggmlTypeNamed(flags.cacheTypeV);
  if (facts.encoder || flags.latentCache || typeK === null || typeV === null) return null;
  if (facts.latent !== null && flags.build !== null && flags.build < NO_LATENT_VALUES_BUILD) return null;
  const { sequences, streams } = slotsOf(flags);
  const total = flags.contextTokens ?? facts.trainedContext ?? 0;
  // One sequence with the whole context is one shared cache; windows and states depend on their number.
  const asked = streams === 1 && facts.window === null && facts.recurrent === null ? 1 : sequences;
  const contextTokens = Math.ceil(total / asked);
  if (total <= 0 || contextTokens * asked > MOST_TOKENS) return null;
  return {
    contextTokens,
    sequences: asked,
    ubatches: [Math.max(Math.min(flags.ubatch, flags.batch, total), asked + 1), asked + 1],
    flashAttention: flags.flashAttention === 'auto' ? 'auto' : flags.flashAttention === 'on',
    typeK: typeK.id,
    typeV: typeV.id,
    fullWindowCache: flags.fullWindowCache,
  };
}

/** `footprint` is ours for `flags`; null where the load can not be compared. */
export function withReference(
  header: GgufHeader,
  flags: LoadFlags,
  footprint: Footprint,
  answer: ReferenceAnswer,
): Footprint | null {
  const question = referenceQuestion(factsOf(header), flags);
  if (question === null) return null;
  const [whole, small] = question.ubatches.map((ubatch) => ours(header, flags, question, ubatch));
  if (whole === undefined || small === undefined) return null;
  const [wholeBytes, smallBytes] = answer.contextBytes;
  const caches = small.kvBytes + small.recurrentBytes;
  // Where the next token is read off: a row of the vocabulary for each sequence.
  const outputs = 4 * question.sequences * factsOf(header).vocabulary;
  const theirs = Math.max(0, smallBytes - outputs - small.computeBytes);
  const slack = AGREE.bytes + caches * AGREE.share + small.computeBytes * SMALL_COMPUTE_SHARE;
  const cacheRatio = ratio(theirs, caches, slack);
  const weightSlack = Math.max(AGREE_WEIGHTS.bytes, whole.weightsBytes * AGREE_WEIGHTS.share);
  const weightRatio = ratio(answer.weightsBytes, whole.weightsBytes, weightSlack);
  const compute = wholeBytes - outputs - (whole.kvBytes + whole.recurrentBytes) * cacheRatio;
  const unseen = caches === 0 && theirs > slack ? theirs : 0;
  const parts = {
    weightsBytes: Math.round(footprint.weightsBytes * weightRatio),
    kvBytes: Math.round(footprint.kvBytes * cacheRatio) + unseen,
    recurrentBytes: Math.round(footprint.recurrentBytes * cacheRatio),
    computeBytes: Math.round(
      carried(flags, footprint.computeBytes, whole.computeBytes, Math.max(0, compute)),
    ),
    overheadBytes: footprint.overheadBytes,
  };
  return {
    ...footprint,
    ...parts,
    totalBytes: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    notes: [
      ...footprint.notes,
      remark(answer.engine, whole.weightsBytes + caches, answer.weightsBytes + theirs, [
        cacheRatio,
        weightRatio,
        unseen === 0 ? 1 : 0,
      ]),
    ],
  };
}

/** Our figures for exactly what was asked. Its outputs are those of every token. */
function ours(header: GgufHeader, flags: LoadFlags, question: ReferenceQuestion, ubatch: number): Footprint {
  const { contextTokens, sequences } = question;
  return estimate(
    header,
    {
      ...DEFAULT_FLAGS,
      // It reserves outputs for every token, and its llama.cpp is older than the newest server's.
      build: FEW_OUTPUTS_BUILD - 1,
      contextTokens: contextTokens * sequences,
      slots: sequences,
      unified: false,
      batch: ubatch,
      ubatch,
      cacheTypeK: flags.cacheTypeK,
      cacheTypeV: flags.cacheTypeV,
      flashAttention: flags.flashAttention,
      fullWindowCache: flags.fullWindowCache,
    },
    'cpu',
  );
}

/**
 * `mine` for the load that is meant, `same` for the one that was asked for, `theirs` for that one too.
 * A newer llama-server reserves outputs for its slots alone, which can not be asked for: there theirs is
 * the most that it can be.
 */
function carried(flags: LoadFlags, mine: number, same: number, theirs: number): number {
  const more = mine - same;
  const few = flags.build !== null && flags.build >= FEW_OUTPUTS_BUILD;
  const slack = Math.max(theirs * COMPUTE_SLACK.share, COMPUTE_SLACK.bytes);
  return few ? Math.min(mine, theirs + slack + Math.max(0, more)) : Math.max(0, theirs + more);
}

/** 1 where both are as good as the same. */
function ratio(theirs: number, mine: number, slack: number): number {
  return mine === 0 || Math.abs(theirs - mine) <= slack ? 1 : theirs / mine;
}

function remark(engine: string, mine: number, theirs: number, ratios: readonly number[]): string {
  if (ratios.every((one) => one === 1))
    return `llama.cpp itself (${engine}, a run without memory) comes to the same weights and caches.`;
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  return `llama.cpp itself (${engine}, a run without memory) comes to ${mib(theirs)} of weights and caches where the arithmetic has ${mib(mine)}: its figure is used.`;
}
