import { acquireTurn, type WaitOptions } from './acquire.ts';
import type { Gate } from './gate.ts';
import { type BusyTurn, type CancelledTurn, type GrantedTurn, isGranted } from './turn.ts';

/** One entry of an agent's fallback chain; the first is the primary. */
export interface ChainEntry {
  readonly url: string | null;
  readonly model?: string | null;
}

export interface Deflection<E extends ChainEntry> {
  readonly entry: E;
  readonly index: number;
  readonly busy: BusyTurn;
}

/**
 * granted    go to `entry` now, and dispose `turn` in the outermost finally
 * exhausted  every entry left is a local backend in use
 */
export type Walk<E extends ChainEntry> =
  | {
      readonly kind: 'granted';
      readonly entry: E;
      readonly index: number;
      readonly turn: GrantedTurn;
      readonly deflections: readonly Deflection<E>[];
    }
  | { readonly kind: 'exhausted'; readonly deflections: readonly Deflection<E>[] }
  | {
      readonly kind: 'cancelled';
      readonly turn: CancelledTurn;
      readonly deflections: readonly Deflection<E>[];
    };

export interface WalkOptions<E extends ChainEntry> extends WaitOptions {
  /** After entry i failed at its provider: i + 1. Default 0, and each new turn begins there again (rule 18). */
  readonly from?: number;
  /** Told of each busy local entry that is passed over. */
  readonly onDeflected?: (deflection: Deflection<E>) => void;
}

/**
 * The first entry of the chain that may be used now: busy local backends are passed over, wherever
 * in the chain they stand. Only the first entry tried is waited for.
 */
export async function walkFallbacks<E extends ChainEntry>(
  gate: Gate,
  chain: readonly E[],
  options: WalkOptions<E> = {},
): Promise<Walk<E>> {
  const { from = 0, onDeflected, waitMs = 0, ...rest } = options;
  const deflections: Deflection<E>[] = [];
  for (const [index, entry] of chain.entries()) {
    if (index < from) continue;
    const turn = await acquireTurn(gate, entry.url, {
      ...rest,
      ...(entry.model === undefined ? {} : { model: entry.model }),
      waitMs: index === from ? waitMs : 0,
    });
    if (isGranted(turn)) return { kind: 'granted', entry, index, turn, deflections };
    if (turn.kind === 'cancelled') return { kind: 'cancelled', turn, deflections };
    const deflection = { entry, index, busy: turn };
    deflections.push(deflection);
    onDeflected?.(deflection);
  }
  return { kind: 'exhausted', deflections };
}
