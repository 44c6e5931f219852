import { factsOf } from './architecture.ts';
import { type DeviceKind, isUnified } from './device-kind.ts';
import { type Companions, estimate, type Footprint } from './estimate.ts';
import { type LoadFlags, slotsOf } from './flags.ts';
import type { GgufHeader } from './gguf-header.ts';

/**
 *   all layers with the context asked for, or with the largest that fits  ─► `context`
 *   not even with a small one: as many layers as fit                      ─► `layers`
 *   not one layer                                                         ─► `none`
 */
export type Fit =
  | { readonly kind: 'context'; readonly contextTokens: number; readonly footprint: Footprint }
  | {
      readonly kind: 'layers';
      readonly gpuLayers: number;
      readonly contextTokens: number;
      readonly footprint: Footprint;
    }
  | { readonly kind: 'none'; readonly leastBytes: number };

const CONTEXT_STEP = 256;
/** With less a model is of little use: layers give way first. */
const SMALL_CONTEXT = 4_096;
const LARGEST_CONTEXT = 16_777_216;

/** What of the model fits into so many bytes. Pure; some 30 estimates of a millisecond each. */
export function largestFit(
  header: GgufHeader,
  flags: LoadFlags,
  kind: DeviceKind,
  freeBytes: number,
  companions: Companions = {},
): Fit {
  const facts = factsOf(header);
  const at = (changes: Partial<LoadFlags>): Footprint =>
    estimate(header, { ...flags, ...changes }, kind, companions);
  const fits = (footprint: Footprint): boolean => footprint.totalBytes <= freeBytes;
  const step = CONTEXT_STEP * slotsOf(flags).streams;
  const most = flags.contextTokens ?? facts.trainedContext ?? LARGEST_CONTEXT;
  const least = flags.contextTokens ?? Math.min(most, SMALL_CONTEXT);
  if (fits(at({ contextTokens: least }))) {
    const steps = largest(Math.floor(least / step), Math.ceil(most / step), (count) =>
      fits(at({ contextTokens: Math.min(most, count * step) })),
    );
    const contextTokens = Math.max(least, Math.min(most, steps * step));
    return { kind: 'context', contextTokens, footprint: at({ contextTokens }) };
  }
  const layers = facts.layers.length + 1;
  const asked = Math.min(flags.gpuLayers ?? layers, layers);
  const few = at({ contextTokens: least, gpuLayers: 0 });
  if (isUnified(kind) || !fits(few)) return { kind: 'none', leastBytes: few.totalBytes };
  const gpuLayers = largest(0, asked, (count) => fits(at({ contextTokens: least, gpuLayers: count })));
  if (gpuLayers === 0)
    return { kind: 'none', leastBytes: at({ contextTokens: least, gpuLayers: 1 }).totalBytes };
  return {
    kind: 'layers',
    gpuLayers,
    contextTokens: least,
    footprint: at({ contextTokens: least, gpuLayers }),
  };
}

/** The largest in range for which it holds, taking for granted that it holds for the smallest. */
function largest(from: number, to: number, holds: (count: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
