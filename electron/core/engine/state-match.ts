import type { StateRecord } from './engine-host.ts';

/** What is known of a saved state and of the context it is to go into. */
export type StateTarget = Omit<StateRecord, 'path' | 'bytes' | 'sha256' | 'tokens' | 'pendingToken'>;

/**
 * Why a state can't go on bit for bit in this context; null: it can. A larger context is right; another
 * batch size, flash attention the other way, another number of threads or another device give other last
 * bits, and another model or cache type would abort (all measured).
 */
export function mismatch(record: StateRecord, target: StateTarget): string | null {
  if (record.fingerprint !== target.fingerprint) return 'it is of another model file';
  if (record.contextTokens > target.contextTokens) {
    return `it is of a context of ${record.contextTokens} tokens, and this one has ${target.contextTokens}`;
  }
  if (record.tokens.length > target.contextTokens) return 'it has more tokens than this context';
  const fields = [
    'batchTokens',
    'flashAttention',
    'cacheTypeK',
    'cacheTypeV',
    'threads',
    'gpu',
    'gpuLayers',
  ] as const;
  const other = fields.find((field) => record[field] !== target[field]);
  return other === undefined ? null : `its ${other} is ${record[other]}, and here it is ${target[other]}`;
}
