import { formatBytes } from '../../../shared/format.ts';
import { factsOf } from '../../core/ledger/footprint/architecture.ts';
import type { DeviceKind } from '../../core/ledger/footprint/device-kind.ts';
import { isUnified } from '../../core/ledger/footprint/device-kind.ts';
import { type Companions, estimate, type Footprint } from '../../core/ledger/footprint/estimate.ts';
import { largestFit } from '../../core/ledger/footprint/fit.ts';
import { DEFAULT_FLAGS, type LoadFlags } from '../../core/ledger/footprint/flags.ts';
import type { GgufHeader } from '../../core/ledger/footprint/gguf-header.ts';

/** How a model is to be started so that it fits, and why so. */
export interface Choice {
  readonly kind: 'fits';
  /** Keys and values of its preset, as llama-server's long flags. */
  readonly keys: readonly (readonly [key: string, value: string])[];
  readonly contextTokens: number;
  readonly footprint: Footprint;
  /** Sentences. */
  readonly why: readonly string[];
}

export type Chosen = Choice | { readonly kind: 'none'; readonly why: string };

export interface Wish {
  readonly budgetBytes: number;
  readonly deviceKind: DeviceKind;
  /** The most that is given; null: `USUAL_CONTEXT`. */
  readonly contextTokens: number | null;
  readonly slots: number;
}

/** More is rarely used, and each token costs memory that another model could have. `--ctx` says otherwise. */
export const USUAL_CONTEXT = 32_768;
/** An agent's tools and files do not fit into less: keys and values are made smaller first. */
const USEFUL_CONTEXT = 16_384;
const LEAST_CONTEXT = 4_096;

/**
 * Pure. In this order: all layers with full keys and values and the context wished for; with 8-bit keys and
 * values; with less context; with the experts of some layers in the host's memory, where it has experts;
 * with some layers there.
 */
export function choose(header: GgufHeader, companions: Companions, wish: Wish): Chosen {
  const facts = factsOf(header);
  const trained = facts.trainedContext ?? Number.MAX_SAFE_INTEGER;
  const mostTokens = Math.min(trained, wish.contextTokens ?? USUAL_CONTEXT) * wish.slots;
  const base: LoadFlags = {
    ...DEFAULT_FLAGS,
    slots: wish.slots,
    projectorPath: null,
    contextTokens: mostTokens,
  };
  const sized = (flags: LoadFlags): Footprint => estimate(header, flags, wish.deviceKind, companions);
  const fits = (footprint: Footprint): boolean => footprint.totalBytes <= wish.budgetBytes;
  const asked = trained <= mostTokens / wish.slots ? 'all it was trained for' : 'what is asked for';

  if (facts.encoder) return encoder(sized, fits, base, trained, wish);
  const whole = sized(base);
  if (fits(whole))
    return chosen(base, whole, [`${perSlot(mostTokens, wish)}, ${asked}, with full keys and values.`]);

  const small: LoadFlags = { ...base, cacheTypeK: 'q8_0', cacheTypeV: 'q8_0', flashAttention: 'on' };
  const need = `With full keys and values it would take ${formatBytes(whole.totalBytes)}`;
  const least = Math.min(mostTokens, LEAST_CONTEXT * wish.slots);
  // 8 bits halve what a token costs; less context than is useful is no gain over it.
  for (const flags of [base, small]) {
    const isSmall = flags === small;
    const found = largestFit(
      header,
      { ...flags, contextTokens: null },
      wish.deviceKind,
      wish.budgetBytes,
      companions,
    );
    if (found.kind !== 'context') continue;
    const tokens = Math.min(found.contextTokens, mostTokens);
    const enough = isSmall ? least : Math.min(mostTokens, USEFUL_CONTEXT * wish.slots);
    if (tokens < enough) continue;
    const flagged = { ...flags, contextTokens: tokens };
    const less = tokens < mostTokens ? ` ${perSlot(tokens, wish)} is the most that fits.` : '';
    const how = isSmall ? ' 8-bit ones fit.' : '';
    return chosen(flagged, sized(flagged), [`${need}.${how}${less}`]);
  }
  return offloaded(
    sized,
    fits,
    { ...small, contextTokens: least },
    facts.layers.length,
    facts.experts > 0,
    wish,
    whole,
  );
}

/** Reads a text at once: its batch is its context, and it keeps no cache. */
function encoder(
  sized: (flags: LoadFlags) => Footprint,
  fits: (footprint: Footprint) => boolean,
  base: LoadFlags,
  trained: number,
  wish: Wish,
): Chosen {
  const tokens = Math.min(trained, wish.contextTokens ?? USUAL_CONTEXT);
  const flags = { ...base, slots: 1, contextTokens: tokens, batch: tokens, ubatch: tokens };
  const footprint = sized(flags);
  if (!fits(footprint)) return none(footprint.totalBytes, wish);
  const why = [`It makes embeddings: a text of up to ${tokens} tokens is read at once.`];
  return chosen(flags, footprint, why, [
    ['embeddings', 'true'],
    ['batch-size', String(tokens)],
    ['ubatch-size', String(tokens)],
  ]);
}

/** Not all of it fits: experts first, since they are used a few at a time, then whole layers. */
function offloaded(
  sized: (flags: LoadFlags) => Footprint,
  fits: (footprint: Footprint) => boolean,
  flags: LoadFlags,
  layers: number,
  hasExperts: boolean,
  wish: Wish,
  whole: Footprint,
): Chosen {
  const all = sized(flags);
  if (isUnified(wish.deviceKind)) return none(all.totalBytes, wish);
  const need = `All of it would take ${formatBytes(whole.totalBytes)}, and ${formatBytes(all.totalBytes)} with the least context and 8-bit keys and values`;
  const fewest = (from: number, to: number, at: (count: number) => LoadFlags): number | null => {
    if (!fits(sized(at(to)))) return null;
    let [low, high] = [from, to];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (fits(sized(at(middle)))) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  if (hasExperts) {
    const at = (count: number): LoadFlags => ({ ...flags, cpuExpertLayers: count });
    const count = fewest(1, layers, at);
    if (count !== null) {
      const why = `${need}: the experts of ${count} of ${layers} layers stay in the host's memory, which is slower.`;
      return chosen(at(count), sized(at(count)), [why], [['n-cpu-moe', String(count)]]);
    }
  }
  const at = (out: number): LoadFlags => ({ ...flags, gpuLayers: layers + 1 - out });
  const out = fewest(1, layers, at);
  if (out === null) return none(sized(at(layers)).totalBytes, wish);
  const why = `${need}: ${out} of ${layers + 1} layers stay in the host's memory, which is slower.`;
  return chosen(at(out), sized(at(out)), [why], [['n-gpu-layers', String(layers + 1 - out)]]);
}

function none(bytes: number, wish: Wish): Chosen {
  return {
    kind: 'none',
    why: `It takes ${formatBytes(bytes)} at the least, and ${formatBytes(wish.budgetBytes)} is there.`,
  };
}

function chosen(
  flags: LoadFlags,
  footprint: Footprint,
  why: readonly string[],
  more: Choice['keys'] = [],
): Choice {
  const isSmall = flags.cacheTypeK !== DEFAULT_FLAGS.cacheTypeK;
  return {
    kind: 'fits',
    contextTokens: flags.contextTokens ?? 0,
    footprint,
    why,
    keys: [
      ['ctx-size', String(flags.contextTokens ?? 0)],
      ['parallel', String(flags.slots ?? 1)],
      ...(isSmall
        ? ([
            ['flash-attn', 'on'],
            ['cache-type-k', flags.cacheTypeK],
            ['cache-type-v', flags.cacheTypeV],
          ] as const)
        : []),
      ...more,
    ],
  };
}

function perSlot(tokens: number, wish: Wish): string {
  const each = Math.floor(tokens / wish.slots);
  return wish.slots === 1
    ? `${each} tokens of context`
    : `${each} tokens of context for each of ${wish.slots} slots`;
}
