import { archNumber, type GgufHeader, perLayer } from './gguf-header.ts';
import { roundUp } from './round-up.ts';

/**
 * DeepSeek V4 (llama.cpp, llama-kv-cache-dsv4.cpp): every layer keeps a window of keys, and most keep
 * keys of tokens pressed together besides, four or 128 to one, with the state of what is being pressed.
 * All of it for each sequence by itself, whatever `--kv-unified` says.
 */
export interface CompressedFacts {
  /** Of each layer: 4, 128, or something else for none. */
  readonly ratios: readonly number[];
  readonly keyElements: number;
  readonly indexerElements: number;
}

const FEW = 4;
const MANY = 128;
const CELL_STEP = 256;

export function compressedOf(header: GgufHeader, count: number, keyLength: number): CompressedFacts | null {
  if (header.architecture !== 'deepseek4') return null;
  const ratios = perLayer(header, 'attention.compress_ratios', count);
  if (ratios === null) return null;
  return {
    ratios,
    keyElements: keyLength,
    indexerElements: archNumber(header, 'attention.indexer.key_length') ?? 0,
  };
}

/** Rows of pressed keys and of the indexer's in one layer, of one sequence with so many cells. */
export function compressedRows(
  facts: CompressedFacts,
  layer: number,
  cells: number,
): { readonly keys: number; readonly indexer: number } {
  const ratio = facts.ratios[layer];
  if (ratio !== FEW && ratio !== MANY) return { keys: 0, indexer: 0 };
  const rows = roundUp(Math.ceil(cells / ratio), CELL_STEP);
  return { keys: rows, indexer: ratio === FEW ? rows : 0 };
}

/** f32 elements of the state of one layer and sequence: what is pressed, and its scores. */
export function compressorElements(facts: CompressedFacts, layer: number): number {
  const { ratios, keyElements, indexerElements } = facts;
  if (ratios[layer] === FEW) return 2 * 2 * FEW * 2 * (keyElements + indexerElements);
  return ratios[layer] === MANY ? 2 * MANY * keyElements : 0;
}
