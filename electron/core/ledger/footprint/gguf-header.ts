/**
 * What a GGUF file says about itself, without its weights. Plain data: it crosses from the child that
 * reads files to the process that computes.
 */
export type MetadataValue = string | number | boolean | readonly MetadataValue[];

export interface TensorInfo {
  readonly name: string;
  /** As ggml writes them: the row first. */
  readonly shape: readonly number[];
  /** ggml's number of the type; see ggml-types.ts. */
  readonly type: number;
  /** In the file, without padding. */
  readonly bytes: number;
}

export interface GgufHeader {
  /** Of the format: 2 or 3, which have the same layout. */
  readonly version: number;
  readonly architecture: string;
  /** Without long lists and texts (a tokenizer's, a chat template). */
  readonly metadata: Readonly<Record<string, MetadataValue>>;
  /** How long each list of the file is, the long ones too. */
  readonly listLengths: Readonly<Record<string, number>>;
  /** Of all parts of a split file. */
  readonly tensors: readonly TensorInfo[];
  /** Of all parts. */
  readonly fileBytes: number;
  /** False: a header alone, with no weights behind it. */
  readonly hasWeights: boolean;
}

/** Under the architecture's own prefix; a number, or null where there is none. */
export function archNumber(header: GgufHeader, key: string): number | null {
  const value = header.metadata[`${header.architecture}.${key}`];
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

/**
 * One number for each of `layers` layers, from a list or a single number; null: no such key. A list that is
 * too short is filled with its largest number: too much is safer than too little.
 */
export function perLayer(header: GgufHeader, key: string, layers: number): readonly number[] | null {
  const value = header.metadata[`${header.architecture}.${key}`];
  if (!Array.isArray(value)) {
    const single = archNumber(header, key);
    return single === null ? null : Array.from({ length: layers }, () => single);
  }
  const numbers = value.map(Number);
  if (numbers.length === 0 || numbers.some((one) => !(one >= 0))) return null;
  const most = Math.max(...numbers);
  return Array.from({ length: layers }, (_, index) => numbers[index] ?? most);
}

export function isList(header: GgufHeader, key: string): boolean {
  return Array.isArray(header.metadata[`${header.architecture}.${key}`]);
}
