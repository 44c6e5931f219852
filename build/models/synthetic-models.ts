import type { GgufSpec } from './gguf-writer.ts';
import {
  BASE,
  gemma2,
  gemma3,
  gptOss,
  llama,
  phi3,
  qwen2,
  qwen3,
  qwen3moe,
} from './synthetic-architectures.ts';
import {
  deepseek2,
  falconH1,
  graniteHybrid,
  jamba,
  lfm2,
  mamba,
  nemotronH,
  qwen35,
} from './synthetic-state-models.ts';

/** One small model of each kind of memory that llama.cpp has. */
export const SMALL_MODELS: Readonly<Record<string, GgufSpec>> = {
  llama: llama(),
  'qwen2 with biases': qwen2(),
  'qwen3, tied': qwen3(),
  qwen3moe: qwen3moe(),
  gemma2: gemma2(),
  gemma3: gemma3(),
  'phi3, whose window is not used': phi3(),
  'gpt-oss': gptOss(),
  mamba: mamba(),
  jamba: jamba(),
  'falcon-h1': falconH1(),
  granitehybrid: graniteHybrid(),
  nemotron_h: nemotronH(),
  lfm2: lfm2(),
  qwen35: qwen35(),
  'qwen35 with a next-token layer': qwen35(undefined, undefined, 1),
  'deepseek2 with latent tensors': deepseek2(),
  'deepseek2 without': deepseek2(undefined, undefined, true),
};

/** Packed, so that a file of real widths is small enough to be mapped at once. */
const Q6_K = 14;
const packed = (spec: GgufSpec): GgufSpec => ({
  ...spec,
  tensors: spec.tensors.map((tensor) =>
    tensor.shape.length > 1 && (tensor.shape[0] ?? 0) % 256 === 0 && !/norm|ssm_|gate_inp/.test(tensor.name)
      ? { ...tensor, type: Q6_K }
      : tensor,
  ),
});
const two = { ...BASE, layers: 2, context: 131_072 };
/** Of the widths of well-known models, few layers of each: what they take beside their weights is as large as theirs. */
const SHAPES: Readonly<Record<string, GgufSpec>> = {
  'Llama 3.1 8B': llama({
    ...two,
    width: 4096,
    heads: 32,
    kvHeads: 8,
    headLength: 128,
    feedForward: 14_336,
    tokens: 128_256,
  }),
  'Qwen3 14B': qwen3({ ...two, width: 5120, heads: 40, kvHeads: 8, headLength: 128, feedForward: 17_408 }),
  'Qwen3 30B A3B': qwen3moe(
    { ...two, width: 2048, heads: 32, kvHeads: 4, headLength: 128, feedForward: 6144 },
    64,
    8,
    768,
  ),
  'Gemma 3 12B': gemma3(
    { ...two, layers: 6, width: 3840, heads: 16, kvHeads: 8, headLength: 256, feedForward: 15_360 },
    1024,
  ),
  'Qwen3.5 9B': qwen35(
    { ...two, layers: 4, width: 4096, heads: 16, kvHeads: 4, headLength: 256, feedForward: 12_288 },
    { kernel: 4, inner: 4096, size: 128, ranks: 32, groups: 16 },
  ),
  'Falcon-H1 1.5B': falconH1(
    { ...two, width: 2048, heads: 16, kvHeads: 2, headLength: 128, feedForward: 4096 },
    { kernel: 4, inner: 3072, size: 256, ranks: 48, groups: 1 },
  ),
  'DeepSeek V2 Lite': deepseek2(
    { ...two, width: 2048, heads: 16, feedForward: 10_944 },
    { rank: 512, rotated: 64, plain: 128, value: 128 },
  ),
};

export const WIDE_MODELS: Readonly<Record<string, GgufSpec>> = Object.fromEntries(
  Object.entries(SHAPES).map(([name, spec]) => [name, packed(spec)]),
);
