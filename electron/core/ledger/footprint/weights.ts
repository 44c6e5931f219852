import type { ModelFacts } from './architecture.ts';
import type { LoadFlags } from './flags.ts';
import type { GgufHeader, TensorInfo } from './gguf-header.ts';

export interface WeightBytes {
  readonly deviceBytes: number;
  /** Stays in the host's memory, mapped from the file: not booked on a device. */
  readonly hostBytes: number;
}

/** Read row by row while a text comes in: never on a device (llama.cpp, `LLM_TENSOR_LAYER_INPUT`). */
const INPUT_TENSOR =
  /^(?:token_embd|token_types|position_embd|token_embd_norm|per_layer_token_embd)\.(?:weight|bias)$/;
const BLOCK = /^blk\.(\d{1,4})\./;
const EXPERT_TENSOR = /\.ffn_(?:up|down|gate|gate_up)_(?:ch)?exps\b/;
const FEED_FORWARD_TENSOR = /\.ffn_(?:up|down|gate)\./;
/** Buffers in the host's memory, as `--override-tensor` names them. */
const HOST_BUFFER = /^(?:CPU|.*_Host)/i;

/**
 * Where each tensor lands (llama.cpp, `load_tensors`): the input on the host, the last `gpuLayers` of
 * blocks and output on the device. A tied output is the embedding once more, on the output's device.
 * `unified`: host and device are the same memory, and every tensor counts once.
 */
export function weightBytes(
  header: GgufHeader,
  facts: ModelFacts,
  flags: LoadFlags,
  unified: boolean,
  notes: string[],
): WeightBytes {
  const used = header.tensors.filter((tensor) => isUsed(tensor, facts, flags));
  const all = used.reduce((sum, tensor) => sum + tensor.bytes, 0);
  if (header.tensors.length === 0) notes.push('The file names no tensors: its weights are not counted.');
  if (unified) return { deviceBytes: all, hostBytes: 0 };
  const place = placement(facts, flags, notes);
  const device = used.reduce((sum, tensor) => sum + (place(tensor.name) ? tensor.bytes : 0), 0);
  const embedding = header.tensors.find((tensor) => tensor.name === 'token_embd.weight');
  const tied = !facts.encoder && !header.tensors.some((tensor) => tensor.name === 'output.weight');
  // The copy goes by the embedding's name where a pattern names it, else to the output's place.
  const copy =
    tied && embedding !== undefined && place(embedding.name, 'output.weight') ? embedding.bytes : 0;
  const hostExperts = used.reduce(
    (sum, tensor) => sum + (EXPERT_TENSOR.test(tensor.name) && !place(tensor.name) ? tensor.bytes : 0),
    0,
  );
  const cached =
    flags.devices === 0 || flags.gpuLayers === 0 ? 0 : Math.min(flags.expertCacheBytes, hostExperts);
  return { deviceBytes: device + copy + cached, hostBytes: all - device };
}

/** These load the feed-forward part of next-token blocks, drafting or not (seen on llama.cpp 11669). */
const LOADS_FEED_FORWARD = /^(?:hy_v3|step35)$/;
const ANY_FEED_FORWARD = /\.ffn_(?!norm)/;

/** Next-token blocks are left in the file unless they draft. */
function isUsed(tensor: TensorInfo, facts: ModelFacts, flags: LoadFlags): boolean {
  if (facts.nextTokenLayers === 0 || flags.nextTokenDraft > 0) return true;
  if (blockOf(tensor.name) < facts.layers.length - facts.nextTokenLayers) return true;
  return LOADS_FEED_FORWARD.test(facts.architecture) && ANY_FEED_FORWARD.test(tensor.name);
}

/** −1: in no block. */
function blockOf(name: string): number {
  return Number(BLOCK.exec(name)?.[1] ?? -1);
}

/**
 * Whether a layer is on the device: the output counts as one more layer after all blocks, and goes first
 * (llama.cpp since December 2025; before, the last blocks did). Next-token layers count among them even
 * where they are not loaded.
 */
export function onDevice(facts: ModelFacts, flags: LoadFlags): (block: number) => boolean {
  const layers = flags.gpuLayers ?? Number.MAX_SAFE_INTEGER;
  const first = Math.max(0, facts.layers.length + 1 - layers);
  return (block) => layers > 0 && block >= first;
}

type Placement = (name: string, standsFor?: string) => boolean;

function placement(facts: ModelFacts, flags: LoadFlags, notes: string[]): Placement {
  const isOnDevice = onDevice(facts, flags);
  const overrides = flags.overrides.flatMap(({ pattern, buffer }) => {
    const regex = toRegex(pattern);
    if (regex === null) notes.push(`The tensor pattern ${pattern} can not be read here: it is passed over.`);
    return regex === null ? [] : [{ regex, host: HOST_BUFFER.test(buffer) }];
  });
  return (own, name = own) => {
    const override = overrides.find(({ regex }) => regex.test(own));
    if (override !== undefined) return !override.host;
    if (INPUT_TENSOR.test(name)) return false;
    const block = blockOf(name);
    if (block < 0) return isOnDevice(facts.layers.length);
    if (block < flags.cpuExpertLayers && EXPERT_TENSOR.test(name)) return false;
    if (block < flags.cpuFeedForwardLayers && FEED_FORWARD_TENSOR.test(name)) return false;
    return isOnDevice(block);
  };
}

/** ECMAScript's, as std::regex has it by default. */
function toRegex(pattern: string): RegExp | null {
  try {
    return pattern.length > 1_000 ? null : new RegExp(pattern);
  } catch {
    return null;
  }
}
