import { factsOf, type ModelFacts } from './architecture.ts';
import { computeBytes, FEW_OUTPUTS_BUILD } from './compute.ts';
import { type DeviceKind, isUnified } from './device-kind.ts';
import type { LoadFlags } from './flags.ts';
import type { GgufHeader } from './gguf-header.ts';
import { cacheShape, layerCacheBytes, layerStateBytes } from './kv-cache.ts';
import { overheadBytes } from './overhead.ts';
import { onDevice, weightBytes } from './weights.ts';

/** Bytes a model takes on its device (all its devices together), by part; the shape of `landlord estimate --json`. */
export interface Footprint {
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly recurrentBytes: number;
  readonly computeBytes: number;
  readonly overheadBytes: number;
  readonly totalBytes: number;
  /** Of the main stack. */
  readonly layers: number;
  /** Layers with keys and values of their own. */
  readonly kvLayers: number;
  /** Of all slots together. */
  readonly contextTokens: number;
  /** What is not counted, or not known, in whole sentences. */
  readonly notes: readonly string[];
}

/** Other files that are loaded with the model. */
export interface Companions {
  readonly projector?: GgufHeader;
  readonly draft?: GgufHeader;
  readonly adapters?: readonly GgufHeader[];
}

/** Pure: the header has been read, the flags are how it is really started. */
export function estimate(
  header: GgufHeader,
  asked: LoadFlags,
  kind: DeviceKind,
  companions: Companions = {},
): Footprint {
  const facts = factsOf(header);
  const flags: LoadFlags = facts.withoutFlash ? { ...asked, flashAttention: 'off' } : asked;
  const notes = [...facts.notes];
  const shape = cacheShape(facts, flags);
  const main = facts.layers.length - facts.nextTokenLayers;
  const unified = isUnified(kind);
  const caches = layerCacheBytes(facts, flags, shape, notes);
  const states = layerStateBytes(facts, flags);
  const here = onDevice(facts, flags);
  const counts = (block: number): boolean => unified || (flags.cacheOnDevice && here(block));
  const onHere = (sum: number, bytes: number, block: number): number => (counts(block) ? sum + bytes : sum);
  const weights = weightBytes(header, facts, flags, unified, notes);
  if (!header.hasWeights)
    notes.push('The file is a header alone, without its weights: no server can load it.');
  const besides = companionBytes(companions, flags, kind, unified);
  const compute = computeBytes(facts, flags, shape) * (drafts(facts, flags) ? 2 : 1);
  const parts = {
    weightsBytes: weights.deviceBytes + besides.weightsBytes,
    kvBytes: caches.reduce(onHere, 0) + besides.kvBytes,
    recurrentBytes: states.reduce(onHere, 0),
    computeBytes: compute + besides.computeBytes,
    overheadBytes: overheadBytes(facts, flags, shape, kind),
  };
  return {
    ...parts,
    totalBytes: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    layers: main,
    kvLayers: caches.slice(0, main).filter((bytes) => bytes > 0).length,
    contextTokens: facts.encoder
      ? Math.min(shape.contextTokens, facts.trainedContext ?? Infinity)
      : shape.contextTokens,
    notes: [...notes, ...remarks(facts, flags, kind, weights.hostBytes)],
  };
}

/** Next-token layers that draft are a context of their own, with buffers of its own. */
function drafts(facts: ModelFacts, flags: LoadFlags): boolean {
  return facts.nextTokenLayers > 0 && flags.nextTokenDraft > 0;
}

/** A projector is weights alone here, a draft model a whole one; adapters go where the layers are. */
function companionBytes(companions: Companions, flags: LoadFlags, kind: DeviceKind, unified: boolean) {
  const sum = (header: GgufHeader): number => header.tensors.reduce((all, tensor) => all + tensor.bytes, 0);
  const { projector, draft, adapters = [] } = companions;
  const beside = adapters.reduce((all, adapter) => all + sum(adapter), 0);
  const projected = projector !== undefined && (unified || flags.projectorOnDevice) ? sum(projector) : 0;
  const small =
    draft === undefined
      ? null
      : estimate(
          draft,
          {
            ...flags,
            cacheTypeK: flags.draft.cacheTypeK,
            cacheTypeV: flags.draft.cacheTypeV,
            gpuLayers: flags.draft.gpuLayers,
            ubatch: flags.draft.ubatch ?? flags.ubatch,
            cpuExpertLayers: flags.draft.cpuExpertLayers,
            cpuFeedForwardLayers: 0,
            overrides: flags.draft.overrides,
            expertCacheBytes: 0,
            nextTokenDraft: 0,
          },
          kind,
        );
  return {
    weightsBytes: beside + projected + (small?.weightsBytes ?? 0),
    kvBytes: (small?.kvBytes ?? 0) + (small?.recurrentBytes ?? 0),
    computeBytes: (small?.computeBytes ?? 0) + (projected > 0 ? PROJECTOR_COMPUTE_BYTES : 0),
  };
}

/** An image's own graph; it depends on the image. */
const PROJECTOR_COMPUTE_BYTES = 256 * 1_048_576;

function remarks(
  facts: ModelFacts,
  flags: LoadFlags,
  kind: DeviceKind,
  hostBytes: number,
): readonly string[] {
  const notes: string[] = [...unsaid(facts)];
  if (flags.contextTokens === null && !facts.encoder)
    notes.push(
      facts.trainedContext === null
        ? 'No context is asked for, and the file does not say one: 4096 tokens are counted.'
        : `No context is asked for, so it is what the model was trained for: ${facts.trainedContext} tokens.`,
    );
  if (facts.window !== null && !flags.fullWindowCache)
    notes.push(
      `Windowed layers keep ${facts.window.tokens} tokens a sequence; an engine without such a cache keeps the whole context.`,
    );
  if (facts.latent !== null && !facts.latent.inFile && !flags.latentCache)
    notes.push('The file has no latent tensors, so full keys and values are kept.');
  if (hostBytes > 0 && !isUnified(kind))
    notes.push(`${Math.round(hostBytes / 1_048_576)} MiB of weights stay in the host’s memory.`);
  if (flags.build === null && !facts.encoder)
    notes.push(
      `llama-server from build ${FEW_OUTPUTS_BUILD} on takes less for its outputs than is counted here.`,
    );
  if (quantised(flags) && flags.flashAttention === 'off')
    notes.push('Quantised values need flash attention: llama-server refuses this.');
  return notes;
}

/** What the file leaves out, so that a part of the sum is too small: no server loads such a file. */
function unsaid(facts: ModelFacts): readonly string[] {
  const notes: string[] = [];
  const keepsNothing = facts.layers.every((layer) => layer.keyElements === 0 && !layer.recurrent);
  if (keepsNothing && !facts.encoder)
    notes.push('The file does not say how wide its attention is: keys and values are not counted.');
  if (facts.vocabulary === 0 && !facts.encoder)
    notes.push('The file does not say how many tokens it knows: the outputs are not counted.');
  return notes;
}

function quantised(flags: LoadFlags): boolean {
  return !/^(?:f32|f16|bf16)$/.test(flags.cacheTypeV);
}
