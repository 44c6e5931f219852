import type { Footprint } from '../ledger/footprint/estimate.ts';

/** Powers of two that people choose from; llama-server's own default for a context is the trained one. */
const USUAL_TOKENS = [4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576];

export interface ContextSize {
  readonly tokens: number;
  readonly estimatedBytes: number;
  /** What it is set to now. */
  readonly present: boolean;
}

/**
 * Sizes under the usual contexts up to what the model was trained for, with the one it is set to,
 * smallest first. Empty where the file can't be read.
 */
export async function contextSizes(
  footprint: (tokens: number | 'set' | 'trained') => Promise<Footprint | null>,
): Promise<readonly ContextSize[]> {
  const [set, trained] = await Promise.all([footprint('set'), footprint('trained')]);
  if (set === null || trained === null) return [];
  const usual = USUAL_TOKENS.filter(
    (tokens) => tokens <= trained.contextTokens && tokens !== set.contextTokens,
  );
  const others = await Promise.all(usual.map(async (tokens) => ({ tokens, found: await footprint(tokens) })));
  return [
    { tokens: set.contextTokens, estimatedBytes: set.totalBytes, present: true },
    ...others.flatMap(({ tokens, found }) =>
      found === null ? [] : [{ tokens, estimatedBytes: found.totalBytes, present: false }],
    ),
  ].sort((one, other) => one.tokens - other.tokens);
}

/**
 * An estimate, moved by what measurement has shown of the context it is set to: what the estimator
 * misses there it misses with every other context as well. `measuredBytes` null: nothing is known.
 */
export function correctedBytes(
  size: ContextSize,
  sizes: readonly ContextSize[],
  measuredBytes: number | null,
): number {
  const set = sizes.find((one) => one.present);
  if (measuredBytes === null || set === undefined) return size.estimatedBytes;
  return Math.max(0, size.estimatedBytes + measuredBytes - set.estimatedBytes);
}
