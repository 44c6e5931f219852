import { describe, expect, it } from 'vitest';
import { headerOf, measuredCase, measuredFiles } from '../../../../build/models/kv-measured.ts';
import type { DeviceKind } from '../../../../electron/core/ledger/footprint/device-kind.ts';
import { estimate } from '../../../../electron/core/ledger/footprint/estimate.ts';
import { DEFAULT_FLAGS, type LoadFlags } from '../../../../electron/core/ledger/footprint/flags.ts';
import { ggmlTypeNamed, packedBytes } from '../../../../electron/core/ledger/footprint/ggml-types.ts';
import type { TensorInfo } from '../../../../electron/core/ledger/footprint/gguf-header.ts';

/**
 * The weights that were logged with some loads, beside the tensors of those public files: their shapes, and the
 * types that llama-quantize gives them (`llama_tensor_get_type`, src/llama-quant.cpp).
 */
const MIB = 1_048_576;

function tensor(name: string, typeName: string, ...shape: number[]): TensorInfo {
  const type = ggmlTypeNamed(typeName);
  if (type === null) throw new Error(typeName);
  const elements = shape.reduce((product, size) => product * size, 1);
  return { name: `${name}.weight`, shape, type: type.id, bytes: packedBytes(type, elements) };
}

const layers = (count: number, of: (layer: number) => readonly TensorInfo[]): TensorInfo[] =>
  Array.from({ length: count }, (_, layer) => of(layer)).flat();

const norms = (layer: number, width: number): readonly TensorInfo[] => [
  tensor(`blk.${layer}.attn_norm`, 'f32', width),
  tensor(`blk.${layer}.ffn_norm`, 'f32', width),
];

/** llama-quantize's `use_more_bits`: the first and last eighth, and every third between. */
function moreBits(layer: number, count: number): boolean {
  const eighth = Math.floor(count / 8);
  return layer < eighth || layer >= Math.floor((7 * count) / 8) || (layer - eighth) % 3 === 2;
}

/** Llama 3.1 8B, Q4_0. */
const LLAMA = [
  tensor('token_embd', 'q4_0', 4096, 128_256),
  tensor('output_norm', 'f32', 4096),
  tensor('output', 'q6_k', 4096, 128_256),
  tensor('rope_freqs', 'f32', 64),
  ...layers(32, (layer) => [
    ...norms(layer, 4096),
    tensor(`blk.${layer}.attn_q`, 'q4_0', 4096, 4096),
    tensor(`blk.${layer}.attn_k`, 'q4_0', 4096, 1024),
    tensor(`blk.${layer}.attn_v`, 'q4_0', 4096, 1024),
    tensor(`blk.${layer}.attn_output`, 'q4_0', 4096, 4096),
    tensor(`blk.${layer}.ffn_gate`, 'q4_0', 4096, 14_336),
    tensor(`blk.${layer}.ffn_up`, 'q4_0', 4096, 14_336),
    tensor(`blk.${layer}.ffn_down`, 'q4_0', 14_336, 4096),
  ]),
];

/** Qwen3 32B, Q4_0 with an importance matrix: the first eighth's way down is Q4_1. */
const QWEN = [
  tensor('token_embd', 'q4_0', 5120, 151_936),
  tensor('output_norm', 'f32', 5120),
  tensor('output', 'q6_k', 5120, 151_936),
  ...layers(64, (layer) => [
    ...norms(layer, 5120),
    tensor(`blk.${layer}.attn_q`, 'q4_0', 5120, 8192),
    tensor(`blk.${layer}.attn_k`, 'q4_0', 5120, 1024),
    tensor(`blk.${layer}.attn_v`, 'q4_0', 5120, 1024),
    tensor(`blk.${layer}.attn_output`, 'q4_0', 8192, 5120),
    tensor(`blk.${layer}.ffn_gate`, 'q4_0', 5120, 25_600),
    tensor(`blk.${layer}.ffn_up`, 'q4_0', 5120, 25_600),
    tensor(`blk.${layer}.ffn_down`, layer < 8 ? 'q4_1' : 'q4_0', 25_600, 5120),
  ]),
];

/** Qwen3.6 27B, Q8_0, with the layer that predicts a further token. */
const HYBRID = [
  tensor('token_embd', 'q8_0', 5120, 248_320),
  tensor('output_norm', 'f32', 5120),
  tensor('output', 'q8_0', 5120, 248_320),
  ...layers(65, (layer) => [
    ...norms(layer, 5120),
    ...(layer % 4 === 3 || layer === 64
      ? [
          tensor(`blk.${layer}.attn_q`, 'q8_0', 5120, 12_288),
          tensor(`blk.${layer}.attn_k`, 'q8_0', 5120, 1024),
          tensor(`blk.${layer}.attn_v`, 'q8_0', 5120, 1024),
          tensor(`blk.${layer}.attn_output`, 'q8_0', 6144, 5120),
        ]
      : [
          tensor(`blk.${layer}.attn_qkv`, 'q8_0', 5120, 10_240),
          tensor(`blk.${layer}.attn_gate`, 'q8_0', 5120, 6144),
          tensor(`blk.${layer}.ssm_alpha`, 'q8_0', 5120, 48),
          tensor(`blk.${layer}.ssm_beta`, 'q8_0', 5120, 48),
          tensor(`blk.${layer}.ssm_conv1d`, 'f32', 4, 10_240),
          tensor(`blk.${layer}.ssm_out`, 'q8_0', 6144, 5120),
        ]),
    tensor(`blk.${layer}.ffn_gate`, 'q8_0', 5120, 17_408),
    tensor(`blk.${layer}.ffn_up`, 'q8_0', 5120, 17_408),
    tensor(`blk.${layer}.ffn_down`, 'q8_0', 17_408, 5120),
  ]),
  tensor('blk.64.nextn.eh_proj', 'q8_0', 10_240, 5120),
];

/** Qwen3 30B A3B, Q4_K_M. */
const EXPERTS = [
  tensor('token_embd', 'q4_k', 2048, 151_936),
  tensor('output_norm', 'f32', 2048),
  tensor('output', 'q6_k', 2048, 151_936),
  ...layers(48, (layer) => {
    const better = moreBits(layer, 48) ? 'q6_k' : 'q4_k';
    return [
      ...norms(layer, 2048),
      tensor(`blk.${layer}.attn_q`, 'q4_k', 2048, 4096),
      tensor(`blk.${layer}.attn_k`, 'q4_k', 2048, 512),
      tensor(`blk.${layer}.attn_v`, better, 2048, 512),
      tensor(`blk.${layer}.attn_output`, 'q4_k', 4096, 2048),
      tensor(`blk.${layer}.ffn_gate_inp`, 'f32', 2048, 128),
      tensor(`blk.${layer}.ffn_gate_exps`, 'q4_k', 2048, 768, 128),
      tensor(`blk.${layer}.ffn_up_exps`, 'q4_k', 2048, 768, 128),
      tensor(`blk.${layer}.ffn_down_exps`, better, 768, 2048, 128),
    ];
  }),
];

/** GLM Z1 32B, IQ4_XS. */
const GLM = [
  tensor('token_embd', 'iq4_xs', 6144, 151_552),
  tensor('output_norm', 'f32', 6144),
  tensor('output', 'q6_k', 6144, 151_552),
  ...layers(61, (layer) => [
    ...['attn_norm', 'ffn_norm', 'post_attention_norm', 'post_ffw_norm'].map((norm) =>
      tensor(`blk.${layer}.${norm}`, 'f32', 6144),
    ),
    tensor(`blk.${layer}.attn_q`, 'iq4_xs', 6144, 6144),
    tensor(`blk.${layer}.attn_k`, 'iq4_xs', 6144, 256),
    tensor(`blk.${layer}.attn_v`, 'q5_k', 6144, 256),
    tensor(`blk.${layer}.attn_output`, 'iq4_xs', 6144, 6144),
    tensor(`blk.${layer}.ffn_up`, 'iq4_xs', 6144, 46_080),
    tensor(`blk.${layer}.ffn_down`, 'iq4_xs', 23_040, 6144),
  ]),
];

interface WeighedCase {
  readonly file: string;
  readonly tensors: readonly TensorInfo[];
  readonly kind?: DeviceKind;
  readonly changes?: Partial<LoadFlags>;
}

const CASES: readonly WeighedCase[] = [
  { file: '01-llama3.1-8b-vulkan-16k-fa.json', tensors: LLAMA, kind: 'vulkan' },
  { file: '05-qwen3-32b-cpu-40k-nofa.json', tensors: QWEN, kind: 'cpu' },
  {
    file: '07-qwen3-30b-a3b-2gpu-nofa-mainline.json',
    tensors: EXPERTS,
    changes: { overrides: [{ pattern: 'exps', buffer: 'CPU' }], devices: 2 },
  },
  { file: '15-glm4-32b-mainline-32k.json', tensors: GLM },
  {
    file: '33-qwen3.6-27b-mtp-rs-seq.json',
    tensors: HYBRID,
    kind: 'hip',
    changes: { nextTokenDraft: 6, rollbackTokens: 6 },
  },
];
const files = measuredFiles();

describe.runIf(files.length > 0)('logged weights', () => {
  for (const { file, tensors, kind = 'cuda', changes = {} } of CASES.filter((one) =>
    files.includes(one.file),
  )) {
    it(`of ${file} are ours to 0.5 %`, () => {
      const given = measuredCase(file);
      const onDevice = (name: string): boolean => kind === 'cpu' || !/^CPU|Host/.test(name);
      const wanted = Object.entries(given.measured.weights_mib ?? {}).reduce(
        (all, [name, mib]) => all + (onDevice(name) ? Number(mib) : 0),
        0,
      );
      const header = { ...headerOf(given), tensors };
      const ours = estimate(header, { ...DEFAULT_FLAGS, ...changes }, kind).weightsBytes / MIB;
      expect(wanted).toBeGreaterThan(0);
      expect(Math.abs(ours - wanted)).toBeLessThan(wanted * 0.005);
    });
  }
});
