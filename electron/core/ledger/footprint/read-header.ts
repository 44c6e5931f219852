import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { type GGUFParseOutput, gguf } from '@huggingface/gguf';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import { splitParts } from '../weight-files.ts';
import { ggmlType, packedBytes } from './ggml-types.ts';
import type { GgufHeader, MetadataValue, TensorInfo } from './gguf-header.ts';
import { walkHeader } from './gguf-walk.ts';

/** Parts, and whether they belong together: gguf-split's keys. */
const SPLIT_COUNT = 'split.count';
const SPLIT_NUMBER = 'split.no';
const SPLIT_TENSORS = 'split.tensors.count';

/**
 * Reads the header of a GGUF file, all its parts where it is split. Only regular files are opened, and
 * of each only the header is read. Errors are `bad_input`, one sentence about the file.
 */
export async function readHeader(path: string): Promise<Result<GgufHeader>> {
  const paths = splitParts(path);
  const parts: GgufHeader[] = [];
  for (const [index, part] of paths.entries()) {
    const read = await readPart(part);
    if (!read.ok) return read;
    const wrong = wrongPart(read.value, index, paths.length, basename(part));
    if (wrong !== null) return fail('bad_input', wrong);
    parts.push(read.value);
  }
  const [first] = parts;
  if (first === undefined || first.architecture === '') {
    return fail('bad_input', `${basename(path)} does not say its architecture, so it is no model.`);
  }
  const tensors = parts.flatMap((part) => part.tensors);
  const wrong = wrongWhole(first, tensors, basename(path));
  if (wrong !== null) return fail('bad_input', wrong);
  return ok({
    ...first,
    tensors,
    fileBytes: parts.reduce((sum, part) => sum + part.fileBytes, 0),
    hasWeights: parts.every((part) => part.hasWeights),
  });
}

/** A part of another model, or one part under two names, would be counted as something it is not. */
function wrongPart(part: GgufHeader, index: number, count: number, name: string): string | null {
  const says = part.metadata[SPLIT_COUNT];
  const number = part.metadata[SPLIT_NUMBER];
  if (count === 1) {
    return typeof says === 'number' && says > 1
      ? `${name} is one of ${says} parts, but its name does not say which: give it back its name (…-00001-of-${String(says).padStart(5, '0')}.gguf).`
      : null;
  }
  if (says === count && number === index) return null;
  return typeof says === 'number' && typeof number === 'number'
    ? `${name} says that it is part ${number + 1} of ${says}, not part ${index + 1} of ${count}: get the file again.`
    : `${name} does not say that it is a part of a split model: get the file again.`;
}

/** llama.cpp refuses parts that have a tensor twice, or do not have all of them (llama-model-loader.cpp). */
function wrongWhole(first: GgufHeader, tensors: readonly TensorInfo[], name: string): string | null {
  const names = new Set(tensors.map((tensor) => tensor.name));
  if (names.size < tensors.length)
    return `${name} and its other parts have a tensor twice, so they do not belong together: get the files again.`;
  const says = first.metadata[SPLIT_TENSORS];
  return typeof says !== 'number' || says === tensors.length
    ? null
    : `${name} says that its parts have ${says} tensors, and they have ${tensors.length}: get the files again.`;
}

async function readPart(path: string): Promise<Result<GgufHeader>> {
  const name = basename(path);
  let file: FileHandle | null = null;
  try {
    const kind = await stat(path);
    if (!kind.isFile()) return fail('bad_input', `${name} is ${kindOf(kind)}, not a file.`);
    // Between the look and the opening it may have become a pipe: that must not wait for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const opened = await file.stat();
    if (!opened.isFile()) return fail('bad_input', `${name} is ${kindOf(opened)}, not a file.`);
    if (opened.size === 0) return fail('bad_input', `${name} is empty: get the file again.`);
    return await parsePart(file, opened.size, name);
  } catch (thrown) {
    return fail('bad_input', `${name} can not be read (${reasonOf(thrown)}).`);
  } finally {
    await file?.close();
  }
}

async function parsePart(file: FileHandle, fileBytes: number, name: string): Promise<Result<GgufHeader>> {
  const walked = await walkHeader(file, fileBytes, name);
  if (!walked.ok) return walked;
  const { version, condensed, listLengths, dataOffset } = walked.value;
  let parsed: GGUFParseOutput;
  try {
    parsed = await parse(condensed);
  } catch (thrown) {
    return fail('bad_input', `${name} is no usable GGUF file (${messageOf(thrown)}).`);
  }
  const metadata = plainMetadata(parsed.metadata);
  const tensors = tensorsOf(parsed, fileBytes - dataOffset);
  if (tensors === null)
    return fail('bad_input', `${name} has a tensor of a size that can not be, so it is damaged.`);
  const hasWeights = fileBytes > dataOffset || tensors.length === 0;
  if (hasWeights) {
    const end = tensors.reduce((most, tensor) => Math.max(most, tensor.end), 0) + dataOffset;
    if (end > fileBytes)
      return fail(
        'bad_input',
        `${name} is cut off: its weights end at ${end} bytes and it has ${fileBytes}: get the file again.`,
        { wantedBytes: end, fileBytes },
      );
  }
  const architecture = metadata['general.architecture'];
  return ok({
    version,
    // Parts after the first have tensors alone.
    architecture: typeof architecture === 'string' ? architecture : '',
    metadata,
    listLengths: Object.fromEntries(listLengths),
    tensors: tensors.map((tensor) => tensor.info),
    fileBytes,
    hasWeights,
  });
}

/** The parser takes a URL and something that fetches ranges of it: here, of the header in memory. */
async function parse(header: Buffer): Promise<GGUFParseOutput> {
  return await gguf('http://header.invalid/', {
    fetch: async (_url, init) => {
      const range = /bytes=(\d+)-(\d+)/.exec(new Headers(init?.headers).get('range') ?? '');
      const from = Number(range?.[1] ?? 0);
      const slice = header.subarray(from, Number(range?.[2] ?? header.length) + 1);
      return new Response(new Uint8Array(slice), {
        headers: { 'content-range': `bytes ${from}-${from + slice.length}/${header.length}` },
      });
    },
  });
}

/** Numbers of 64 bits become plain ones: sizes and counts are far below 2^53. */
function plainMetadata(metadata: object): Record<string, MetadataValue> {
  const plain = Object.entries(metadata).flatMap(([key, value]) => {
    const one = plainValue(value);
    return one === null ? [] : [[key, one] as const];
  });
  // Whatever a key is called, `__proto__` too, it becomes an entry and nothing else.
  return Object.fromEntries(plain);
}

function plainValue(value: unknown): MetadataValue | null {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (!Array.isArray(value)) return null;
  return value.map((one) => plainValue(one) ?? 0);
}

interface PlacedTensor {
  readonly info: TensorInfo;
  /** After the beginning of the data. */
  readonly end: number;
}

/** Types this program does not know are as long as the way to the next tensor. null: a size that can't be. */
function tensorsOf(parsed: GGUFParseOutput, dataBytes: number): readonly PlacedTensor[] | null {
  const offsets = [...new Set(parsed.tensorInfos.map((tensor) => Number(tensor.offset)))].sort(
    (a, b) => a - b,
  );
  const after = new Map(offsets.map((offset, index) => [offset, offsets[index + 1] ?? null]));
  const placed: PlacedTensor[] = [];
  for (const tensor of parsed.tensorInfos) {
    const shape = tensor.shape.map(Number);
    const elements = shape.reduce((product, size) => product * size, 1);
    const offset = Number(tensor.offset);
    if (!Number.isSafeInteger(elements) || !Number.isSafeInteger(offset)) return null;
    const type = ggmlType(tensor.dtype);
    const next = after.get(offset) ?? Math.max(offset, dataBytes);
    const bytes = type === null ? next - offset : packedBytes(type, elements);
    if (!Number.isSafeInteger(offset + bytes)) return null;
    placed.push({ info: { name: tensor.name, shape, type: tensor.dtype, bytes }, end: offset + bytes });
  }
  return placed;
}

function kindOf(stats: { isDirectory(): boolean; isFIFO(): boolean; isSocket(): boolean }): string {
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}

function reasonOf(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    ENOTDIR: 'there is no such file',
    EACCES: 'it may not be read by this user',
    EPERM: 'it may not be read by this user',
    ELOOP: 'its links lead round in a circle',
    ENAMETOOLONG: 'its name is too long',
    EISDIR: 'it is a folder',
  };
  return known[code] ?? (code === '' ? messageOf(thrown) : code);
}
