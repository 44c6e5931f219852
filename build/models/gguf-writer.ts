import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fields, vocabulary } from '../../electron/core/demo/synthetic-gguf.ts';

/** A value of a GGUF header; plain numbers are u32 and plain lists are of u32 or bool. */
export type GgufValue =
  | string
  | number
  | boolean
  | readonly number[]
  | readonly boolean[]
  | { readonly f32: number };

export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** ggml's number; default f32. */
  readonly type?: number;
}

export interface GgufSpec {
  readonly architecture: string;
  /** Keys without a dot at the beginning stand under the architecture's prefix when they begin with `.`. */
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly tensors: readonly GgufTensor[];
  /** Tokens of the vocabulary; default the 312 of the synthetic model. `null`: no tokenizer. */
  readonly tokens?: number | null;
}

const U32 = 4;
const F32 = 6;
const BOOL = 7;
const STRING = 8;
const ARRAY = 9;
const ALIGNMENT = 32;
/** Elements and bytes of a block of the types used in tests. */
const PACKED: Readonly<Record<number, readonly [number, number]>> = {
  0: [1, 4],
  1: [1, 2],
  2: [32, 18],
  8: [32, 34],
  12: [256, 144],
  14: [256, 210],
};

export function tensorBytes(tensor: GgufTensor): number {
  const [elements, bytes] = PACKED[tensor.type ?? 0] ?? [1, 4];
  return (tensor.shape.reduce((product, size) => product * size, 1) / elements) * bytes;
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Everything before the weights. */
export function ggufHeader(spec: GgufSpec): Buffer {
  const head = new Fields();
  const entries = Object.entries(spec.metadata);
  const words = spec.tokens === null ? null : padded(spec.tokens ?? 312);
  head.u32(0x46554747).u32(3).u64(spec.tensors.length);
  head.u64(entries.length + 1 + (words === null ? 0 : 7));
  head.text('general.architecture').u32(STRING).text(spec.architecture);
  for (const [key, value] of entries) {
    head.text(key.startsWith('.') ? `${spec.architecture}${key}` : key);
    writeValue(head, value);
  }
  if (words !== null) writeTokenizer(head, words);
  let offset = 0;
  for (const tensor of spec.tensors) {
    head.text(tensor.name).u32(tensor.shape.length);
    for (const size of tensor.shape) head.u64(size);
    head.u32(tensor.type ?? 0).u64(offset);
    offset += aligned(tensorBytes(tensor));
  }
  const bytes = head.bytes();
  return Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
}

function writeValue(head: Fields, value: GgufValue): void {
  if (typeof value === 'string') head.u32(STRING).text(value);
  else if (typeof value === 'number') head.u32(U32).u32(value);
  else if (typeof value === 'boolean') head.u32(BOOL).raw(Buffer.from([Number(value)]));
  else if ('f32' in value) head.u32(F32).f32(value.f32);
  else if (typeof value[0] === 'boolean')
    head
      .u32(ARRAY)
      .u32(BOOL)
      .u64(value.length)
      .raw(Buffer.from(value.map(Number)));
  else {
    head.u32(ARRAY).u32(U32).u64(value.length);
    for (const one of value) head.u32(Number(one));
  }
}

function writeTokenizer(head: Fields, words: ReturnType<typeof vocabulary>): void {
  head.text('tokenizer.ggml.model').u32(STRING).text('llama');
  head.text('tokenizer.ggml.tokens').u32(ARRAY).u32(STRING).u64(words.tokens.length);
  for (const token of words.tokens) head.text(token);
  head.text('tokenizer.ggml.scores').u32(ARRAY).u32(F32).u64(words.scores.length);
  for (const score of words.scores) head.f32(score);
  head.text('tokenizer.ggml.token_type').u32(ARRAY).u32(5).u64(words.types.length);
  for (const type of words.types) head.u32(type);
  head.text('tokenizer.ggml.unknown_token_id').u32(U32).u32(0);
  head.text('tokenizer.ggml.bos_token_id').u32(U32).u32(1);
  head.text('tokenizer.ggml.eos_token_id').u32(U32).u32(2);
}

/** The synthetic model's words, and others until there are that many. */
function padded(count: number): ReturnType<typeof vocabulary> {
  const words = vocabulary();
  const more = Array.from({ length: Math.max(0, count - words.tokens.length) }, (_, index) => `w${index}`);
  return {
    tokens: [...words.tokens, ...more],
    types: [...words.types, ...more.map(() => 1)],
    scores: [...words.scores, ...more.map(() => -1e6)],
  };
}

/** A whole file whose weights are a hole of zeros: it takes no room, and a server loads it. */
export async function writeGguf(path: string, spec: GgufSpec): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  const header = ggufHeader(spec);
  const weights = spec.tensors.reduce((sum, tensor) => sum + aligned(tensorBytes(tensor)), 0);
  const file = await open(path, 'w');
  try {
    await file.write(header);
    await file.truncate(header.length + weights);
  } finally {
    await file.close();
  }
  return path;
}
