import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Writes small GGUF models of random weights that a real llama-server loads: enough for everything
 * but the words they say. Layout: GGUF version 3 (ggml's docs/gguf.md); architecture `llama`, F32.
 * The same shape and seed give the same bytes.
 */
export interface SyntheticShape {
  readonly layers: number;
  /** Embedding width; a multiple of `heads`. */
  readonly width: number;
  readonly feedForward: number;
  readonly heads: number;
  /** Divides `heads`. */
  readonly kvHeads: number;
  /** What the file says it was trained on; the server may be asked for less. */
  readonly contextTokens: number;
  readonly seed: number;
  /** Spread of the weights, default 0.05; with 0.2 what it says depends on all that was said, and does not repeat soon. */
  readonly sigma?: number;
  /** Jinja; default: the contents, one after the other. */
  readonly chatTemplate?: string;
}

/** Loads in some 30 ms, 0.5 MB. */
export const TINY_SHAPE: SyntheticShape = {
  layers: 2,
  width: 64,
  feedForward: 256,
  heads: 4,
  kvHeads: 2,
  contextTokens: 2048,
  seed: 1,
};

/** 32 MB. */
export const MIDDLE_SHAPE: SyntheticShape = {
  layers: 8,
  width: 256,
  feedForward: 1024,
  heads: 8,
  kvHeads: 4,
  contextTokens: 8192,
  seed: 2,
};

/** 190 MB: generates about 30 tokens/s on two cores, slow enough to be caught at work. */
export const LARGE_SHAPE: SyntheticShape = {
  layers: 12,
  width: 512,
  feedForward: 2048,
  heads: 8,
  kvHeads: 4,
  contextTokens: 32_768,
  seed: 3,
};

const ALIGNMENT = 32;
const SIGMA = 0.05;
const PLAIN_TEMPLATE = '{% for m in messages %}{{ m.content }} {% endfor %}';
/** GGUF value types (docs/gguf.md). */
const U32 = 4;
const I32 = 5;
const F32 = 6;
const STRING = 8;
const ARRAY = 9;
/** SPM token types: normal, unknown, control, byte. */
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const BYTE = 6;

interface Tensor {
  readonly name: string;
  readonly dims: readonly number[];
  /** Norms are all ones; the rest is noise. */
  readonly ones: boolean;
}

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  readonly scores: readonly number[];
}

/** `<unk> <s> </s>`, every byte, the letters and the space: each character is one token. */
export function vocabulary(): Vocabulary {
  const tokens = ['<unk>', '<s>', '</s>'];
  const types = [UNKNOWN, CONTROL, CONTROL];
  for (let byte = 0; byte < 256; byte += 1) {
    tokens.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    types.push(BYTE);
  }
  for (const letter of '\u2581abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ') {
    tokens.push(letter);
    types.push(NORMAL);
  }
  return { tokens, types, scores: tokens.map((_, index) => (index < 259 ? 0 : 259 - index)) };
}

function tensorsOf(shape: SyntheticShape, vocabularySize: number): readonly Tensor[] {
  const { width, feedForward } = shape;
  const kvWidth = (width / shape.heads) * shape.kvHeads;
  const noise = (name: string, ...dims: number[]): Tensor => ({ name, dims, ones: false });
  const norm = (name: string): Tensor => ({ name, dims: [width], ones: true });
  const tensors = [noise('token_embd.weight', width, vocabularySize)];
  for (let layer = 0; layer < shape.layers; layer += 1) {
    const at = `blk.${layer}.`;
    tensors.push(
      norm(`${at}attn_norm.weight`),
      noise(`${at}attn_q.weight`, width, width),
      noise(`${at}attn_k.weight`, width, kvWidth),
      noise(`${at}attn_v.weight`, width, kvWidth),
      noise(`${at}attn_output.weight`, width, width),
      norm(`${at}ffn_norm.weight`),
      noise(`${at}ffn_gate.weight`, width, feedForward),
      noise(`${at}ffn_up.weight`, width, feedForward),
      noise(`${at}ffn_down.weight`, feedForward, width),
    );
  }
  tensors.push(norm('output_norm.weight'), noise('output.weight', width, vocabularySize));
  return tensors;
}

function elementsOf(tensor: Tensor): number {
  return tensor.dims.reduce((product, dim) => product * dim, 1);
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** Grows a buffer of little-endian GGUF fields. */
export class Fields {
  private readonly parts: Buffer[] = [];

  u32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(value);
    this.parts.push(part);
    return this;
  }

  u64(value: number): this {
    const part = Buffer.alloc(8);
    part.writeBigUInt64LE(BigInt(value));
    this.parts.push(part);
    return this;
  }

  f32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeFloatLE(value);
    this.parts.push(part);
    return this;
  }

  text(value: string): this {
    const part = Buffer.from(value, 'utf8');
    this.u64(part.length).parts.push(part);
    return this;
  }

  raw(value: Buffer): this {
    this.parts.push(value);
    return this;
  }

  bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}

/** Everything before the weights, padded to where they begin. */
export function syntheticHeader(shape: SyntheticShape): Buffer {
  const words = vocabulary();
  const tensors = tensorsOf(shape, words.tokens.length);
  const head = new Fields();
  const numbers: readonly (readonly [string, number])[] = [
    ['llama.context_length', shape.contextTokens],
    ['llama.embedding_length', shape.width],
    ['llama.block_count', shape.layers],
    ['llama.feed_forward_length', shape.feedForward],
    ['llama.attention.head_count', shape.heads],
    ['llama.attention.head_count_kv', shape.kvHeads],
    ['llama.rope.dimension_count', shape.width / shape.heads],
    ['llama.vocab_size', words.tokens.length],
    ['tokenizer.ggml.unknown_token_id', 0],
    ['tokenizer.ggml.bos_token_id', 1],
    ['tokenizer.ggml.eos_token_id', 2],
  ];
  const texts: readonly (readonly [string, string])[] = [
    ['general.architecture', 'llama'],
    ['general.name', `synthetic ${shape.layers}x${shape.width}`],
    ['tokenizer.ggml.model', 'llama'],
    ['tokenizer.chat_template', shape.chatTemplate ?? PLAIN_TEMPLATE],
  ];
  head.u32(0x46554747).u32(3).u64(tensors.length);
  head.u64(numbers.length + texts.length + 4);
  for (const [key, value] of texts) head.text(key).u32(STRING).text(value);
  for (const [key, value] of numbers) head.text(key).u32(U32).u32(value);
  head.text('llama.attention.layer_norm_rms_epsilon').u32(F32).f32(1e-5);
  head.text('tokenizer.ggml.tokens').u32(ARRAY).u32(STRING).u64(words.tokens.length);
  for (const token of words.tokens) head.text(token);
  head.text('tokenizer.ggml.scores').u32(ARRAY).u32(F32).u64(words.scores.length);
  for (const score of words.scores) head.f32(score);
  head.text('tokenizer.ggml.token_type').u32(ARRAY).u32(I32).u64(words.types.length);
  for (const type of words.types) head.u32(type);
  let offset = 0;
  for (const tensor of tensors) {
    head.text(tensor.name).u32(tensor.dims.length);
    for (const dim of tensor.dims) head.u64(dim);
    // Type 0 is F32.
    head.u32(0).u64(offset);
    offset += aligned(elementsOf(tensor) * 4);
  }
  const bytes = head.bytes();
  return Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
}

/** Bytes of the tensors, without the header. */
export function syntheticWeightsBytes(shape: SyntheticShape): number {
  return tensorsOf(shape, vocabulary().tokens.length).reduce(
    (sum, tensor) => sum + aligned(elementsOf(tensor) * 4),
    0,
  );
}

/** 2^20 normals by xorshift and Box–Muller; tensors take their noise from it at different places. */
function noisePool(seed: number, sigma: number): Float32Array {
  const pool = new Float32Array(1 << 20);
  let state = (Math.imul(seed, 0x9e3779b1) | 1) >>> 0;
  const uniform = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 0.5) / 4_294_967_296;
  };
  for (let index = 0; index < pool.length; index += 2) {
    const radius = sigma * Math.sqrt(-2 * Math.log(uniform()));
    const angle = 2 * Math.PI * uniform();
    pool[index] = radius * Math.cos(angle);
    pool[index + 1] = radius * Math.sin(angle);
  }
  return pool;
}

/** Two writers of one model, in this process or another, do not write into each other's file. */
let partials = 0;

/** Writes the model to `path`, whole or not at all. */
export async function writeSyntheticGguf(path: string, shape: SyntheticShape): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  partials += 1;
  const partial = `${path}.${process.pid}-${partials}.partial`;
  const file = await open(partial, 'w');
  try {
    await file.write(syntheticHeader(shape));
    const pool = Buffer.from(noisePool(shape.seed, shape.sigma ?? SIGMA).buffer);
    let at = 0;
    for (const tensor of tensorsOf(shape, vocabulary().tokens.length)) {
      let left = elementsOf(tensor) * 4;
      const padding = aligned(left) - left;
      if (tensor.ones) {
        await file.write(Buffer.from(new Float32Array(elementsOf(tensor)).fill(1).buffer));
        left = 0;
      }
      while (left > 0) {
        const length = Math.min(left, pool.length - at);
        await file.write(pool, at, length);
        left -= length;
        at = (at + length) % pool.length;
      }
      if (padding > 0) await file.write(Buffer.alloc(padding));
    }
    await file.close();
    await rename(partial, path);
  } finally {
    await file.close().catch(() => undefined);
    await rm(partial, { force: true });
  }
}

/** Path of the model of this shape in `folder`; written when it is not there or not whole. */
export async function ensureSyntheticGguf(folder: string, shape: SyntheticShape): Promise<string> {
  const { layers, width, feedForward, heads, kvHeads, contextTokens, seed } = shape;
  const more = shape.sigma === undefined ? '' : `-${shape.sigma}`;
  const template = shape.chatTemplate === undefined ? '' : `-t${shape.chatTemplate.length}`;
  const name = `llama-${layers}x${width}-${feedForward}-${heads}-${kvHeads}-${contextTokens}-${seed}${more}${template}.gguf`;
  const path = join(folder, name);
  const wantedBytes = syntheticHeader(shape).length + syntheticWeightsBytes(shape);
  const present = await stat(path).catch(() => null);
  if (present?.size !== wantedBytes) await writeSyntheticGguf(path, shape);
  return path;
}
