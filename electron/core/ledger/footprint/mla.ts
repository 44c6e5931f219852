import { archNumber, type GgufHeader } from './gguf-header.ts';

/**
 * Multi-head latent attention (DeepSeek, Kimi, GLM-4.7 Flash): one latent row a token and layer in the
 * place of keys and values per head.
 */
export interface LatentFacts {
  /** The latent rank and the rotated dimensions. */
  readonly rowElements: number;
  readonly rankElements: number;
  /** The file's own `key_length` is the row's. */
  readonly byKeys: boolean;
  /** False: the file lets it be computed, but llama.cpp runs it with full keys and values. */
  readonly inFile: boolean;
}

/** These keep full keys and values whatever their file says of a latent rank (llama.cpp, models/minicpm3.cpp, plm.cpp). */
const EXPANDED = new Set(['minicpm3', 'plm', 'deepseek2-ocr', 'k2-horizon']);

/**
 * By what the file holds, not by its name alone: files made before llama.cpp took latent tensors
 * (`attn_kv_b` whole, no `key_length_mla`) run with full keys and values there, 24 times as large;
 * ik_llama.cpp computes the latent ones where it is told to (`-mla`). null: no latent rank in it.
 */
export function latentOf(header: GgufHeader): LatentFacts | null {
  const rank = archNumber(header, 'attention.kv_lora_rank') ?? 0;
  if (rank === 0 || EXPANDED.has(header.architecture)) return null;
  const byKeys =
    (archNumber(header, 'attention.key_length_mla') ?? 0) > 0 &&
    (archNumber(header, 'attention.value_length_mla') ?? 0) > 0;
  const byTensors =
    header.tensors.length === 0 || header.tensors.some((tensor) => /\.attn_k_b\.weight$/.test(tensor.name));
  const row = rank + (archNumber(header, 'rope.dimension_count') ?? 0);
  return { rowElements: row, rankElements: rank, byKeys, inFile: byKeys || byTensors };
}
