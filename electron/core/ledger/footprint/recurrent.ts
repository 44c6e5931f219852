import { archNumber, type GgufHeader, perLayer } from './gguf-header.ts';
import { ownEntry } from './own-entry.ts';

/** A state of fixed size per sequence (Mamba, RWKV, gated delta nets, short convolutions), f32 always. */
export interface RecurrentFacts {
  /** Per sequence and layer: what the convolution remembers, and the state itself. */
  readonly convolutionElements: number;
  readonly stateElements: number;
  /** Widths of what is computed from a token: the inner one, and with what the convolution mixes. */
  readonly innerElements: number;
  readonly mixedElements: number;
  /** A gated delta net, not a scan. */
  readonly deltaNet: boolean;
  readonly layers: readonly boolean[];
  /** Layers that also attend; false: none of that layer's keys and values are kept. */
  readonly attends: readonly boolean[];
}

interface Stack {
  readonly main: number;
  readonly count: number;
  readonly embedding: number;
  readonly heads: readonly number[];
  readonly kvHeads: readonly number[];
  readonly feedForward: readonly number[];
}

/** llama.cpp's `llm_arch_is_recurrent`: no layer attends. */
const ALL_RECURRENT = /^(?:mamba2?|rwkv6|rwkv6qwen2|rwkv7|arwkv7)$/;
/** Every layer has a state and attends. */
const BOTH = /^falcon-h1$/;
/** A layer without key-value heads has a state (`recurrent_layer_arr`, src/models/*.cpp). */
const WITHOUT_HEADS =
  /^(?:jamba|granitehybrid|plamo2|lfm2|lfm2moe|kimi-linear|kimi-k3|bailingmoe3|glm5-next)$/;
/** The same, but a layer of feed-forward alone has neither. */
const WITHOUT_HEADS_OR_FEED_FORWARD = /^nemotron_h(?:_moe)?$/;
/** One layer in so many attends where `full_attention_interval` does not say. */
const INTERVALS: Readonly<Record<string, number>> = {
  qwen3next: 4,
  qwen35: 4,
  qwen35moe: 4,
  qwen4exp: 4,
  'minimax-01': 8,
};
const DELTA_NET = /^qwen/;
/** Mamba of the first kind, whose convolution mixes the inner width alone, whatever groups a file names. */
const WITHOUT_GROUPS = /^(?:mamba|jamba)$/;
/**
 * These keep one state a sequence however many tokens are drafted (llama.cpp, `llm_arch_supports_rs_rollback`
 * of build 11669). Of architectures that are not known more is counted, not less.
 */
const NO_ROLLBACK =
  /^(?:mamba2?|jamba|falcon-h1|granitehybrid|plamo2|qwen3next|minimax-01|kimi-linear|rwkv6|rwkv6qwen2|rwkv7|arwkv7)$/;

export function rollsBack(architecture: string): boolean {
  return !NO_ROLLBACK.test(architecture);
}

/** What a layer's tensors are called when it has a state. */
const STATE_TENSOR = /^blk\.(\d{1,4})\.(?:ssm_|shortconv|time_mix|linear_attn)/;
const ATTENTION_TENSOR = /^blk\.(\d{1,4})\.attn_(?:k|k_b|kv_a_mqa|kv_b)\.weight$/;

/** null: no layer has a state. */
export function recurrentOf(header: GgufHeader, stack: Stack, notes: string[]): RecurrentFacts | null {
  const marked = markedLayers(header, stack);
  if (marked === null) return null;
  const sizes = stateSizes(header, stack);
  if (sizes === null) {
    notes.push('Layers with a state per sequence are named, but not its size: the state is not counted.');
  }
  const inner = archNumber(header, 'ssm.inner_size') ?? 0;
  const kernel = archNumber(header, 'ssm.conv_kernel') ?? 0;
  return {
    convolutionElements: sizes?.convolution ?? 0,
    stateElements: sizes?.state ?? 0,
    innerElements: inner,
    mixedElements: kernel > 1 ? (sizes?.convolution ?? 0) / (kernel - 1) : inner,
    deltaNet: DELTA_NET.test(header.architecture),
    ...marked,
  };
}

type Marks = Pick<RecurrentFacts, 'layers' | 'attends'>;

function markedLayers(header: GgufHeader, stack: Stack): Marks | null {
  const { architecture } = header;
  const { count, main, kvHeads, feedForward } = stack;
  const each = (rule: (index: number) => boolean): readonly boolean[] =>
    Array.from({ length: count }, (_, index) => index < main && rule(index));
  const either = (layers: readonly boolean[]): Marks => ({ layers, attends: layers.map((one) => !one) });
  if (ALL_RECURRENT.test(architecture)) return either(each(() => true));
  if (BOTH.test(architecture)) return { layers: each(() => true), attends: each(() => true) };
  const listed = perLayer(header, 'attention.recurrent_layers', count);
  if (listed !== null) return either(each((index) => listed[index] !== 0));
  if (WITHOUT_HEADS.test(architecture)) return either(each((index) => kvHeads[index] === 0));
  if (WITHOUT_HEADS_OR_FEED_FORWARD.test(architecture))
    return either(each((index) => kvHeads[index] === 0 && feedForward[index] === 0));
  const interval = archNumber(header, 'full_attention_interval') || ownEntry(INTERVALS, architecture);
  if (interval !== undefined) {
    const step = Math.max(1, interval);
    return either(each((index) => (index + 1) % step !== 0));
  }
  return byTensors(header, stack);
}

/** An architecture this program has no rule for: a layer is what its tensors are called. */
function byTensors(header: GgufHeader, stack: Stack): Marks | null {
  const state = layersWith(header, STATE_TENSOR);
  if (state.size > 0) {
    const attention = layersWith(header, ATTENTION_TENSOR);
    const layers = Array.from({ length: stack.count }, (_, index) => state.has(index));
    return { layers, attends: layers.map((one, index) => !one || attention.has(index)) };
  }
  const hasState = (archNumber(header, 'ssm.state_size') ?? 0) > 0;
  if (!hasState || header.tensors.length > 0) return null;
  const layers = stack.kvHeads.map((heads, index) => index < stack.main && heads === 0);
  return layers.some(Boolean) ? { layers, attends: layers.map((one) => !one) } : null;
}

function layersWith(header: GgufHeader, pattern: RegExp): ReadonlySet<number> {
  const found = new Set<number>();
  for (const { name } of header.tensors) {
    const match = pattern.exec(name);
    if (match !== null) found.add(Number(match[1]));
  }
  return found;
}

/** llama.cpp, `llama_hparams::n_embd_r` and `n_embd_s`. null: the file has no size. */
function stateSizes(header: GgufHeader, stack: Stack): { convolution: number; state: number } | null {
  const { embedding } = stack;
  const rwkvHead = archNumber(header, 'wkv.head_size') ?? 0;
  if (rwkvHead > 0) {
    const shifts =
      archNumber(header, 'token_shift_count') ?? (/qwen2$|^arwkv/.test(header.architecture) ? 1 : 2);
    return { convolution: shifts * embedding, state: embedding * rwkvHead };
  }
  const shortConvolution = archNumber(header, 'shortconv.l_cache') ?? 0;
  if (shortConvolution > 0) return { convolution: embedding * (shortConvolution - 1), state: 0 };
  const kernel = archNumber(header, 'ssm.conv_kernel') ?? 0;
  const deltaHead = archNumber(header, 'kda.head_dim') ?? 0;
  if (deltaHead > 0) {
    const inner = (stack.heads[0] || Math.max(...stack.heads, 0)) * deltaHead;
    return { convolution: 3 * (kernel > 0 ? kernel - 1 : 3) * inner, state: deltaHead * inner };
  }
  if (header.architecture === 'minimax-01') {
    const heads = stack.heads[0] ?? 0;
    const length = archNumber(header, 'attention.key_length') ?? (heads === 0 ? 0 : embedding / heads);
    return { convolution: 0, state: length * length * heads };
  }
  const inner = archNumber(header, 'ssm.inner_size') ?? 0;
  const size = archNumber(header, 'ssm.state_size') ?? 0;
  const groups = WITHOUT_GROUPS.test(header.architecture) ? 0 : (archNumber(header, 'ssm.group_count') ?? 0);
  if (inner === 0 || size === 0) return null;
  return { convolution: Math.max(0, kernel - 1) * (inner + 2 * groups * size), state: size * inner };
}
