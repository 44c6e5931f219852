import type { FileHandle } from 'node:fs/promises';
import { fail, ok, type Result } from '../../../../shared/errors.ts';

/**
 * The guard before the GGUF parser. The parser decodes every list of a header, token by token (1.2 s and
 * 156 MB measured for 150 000 tokens, 4.2 s and 334 MB for 262 000), reads past the end of a cut file as
 * zeros, and believes its counts. This walks over the same header once, in blocks, without decoding: it
 * checks each count against the bytes that are there, and hands the parser a copy in which long lists
 * and texts are empty. Layout: ggml's docs/gguf.md, versions 2 and 3.
 */
export interface WalkedHeader {
  /** 2 or 3. */
  readonly version: number;
  /** A header of the same keys and tensors, without long lists and texts. */
  readonly condensed: Buffer;
  /** How long each list was. */
  readonly listLengths: ReadonlyMap<string, number>;
  /** Where the tensors' bytes begin in the file. */
  readonly dataOffset: number;
}

const MAGIC = 0x46554747;
const U32 = 4;
const STRING = 8;
const ARRAY = 9;
/** Bytes of the fixed-size value types, by their number. */
const VALUE_BYTES: readonly (number | null)[] = [1, 1, 2, 2, 4, 4, 4, 1, null, null, 8, 8, 8];

/** Far above any real model (Kimi K2: 1.1 thousand tensors, Gemma 4: 515 thousand merges). */
const MOST_KEYS = 65_536;
const MOST_TENSORS = 262_144;
const MOST_ELEMENTS = 16_777_216;
const MOST_HEADER_BYTES = 536_870_912;
const MOST_DIMENSIONS = 4;
const LONGEST_KEY = 65_535;
/** ggml has room for 63 (`GGML_MAX_NAME`). */
const LONGEST_TENSOR_NAME = 1_024;
/** Per-layer lists are kept; llama.cpp allows 512 layers. */
const LONGEST_KEPT_LIST = 4_096;
const LONGEST_KEPT_TEXT = 1_024;
/** A key and its value, or a tensor's line: longer than this only what is not kept. */
const LONGEST_KEPT = 131_072;
const BLOCK_BYTES = 1_048_576;

class CutOff extends Error {}
class Unbelievable extends Error {}

/** `name` is for the sentence of an error. Errors are `bad_input`. */
export async function walkHeader(
  file: FileHandle,
  fileBytes: number,
  name: string,
): Promise<Result<WalkedHeader>> {
  try {
    return ok(await walk(new Cursor(file, fileBytes)));
  } catch (thrown) {
    if (thrown instanceof CutOff)
      return fail('bad_input', `${name} is cut off in its header at ${fileBytes} bytes: get the file again.`);
    if (thrown instanceof Unbelievable) return fail('bad_input', `${name} ${thrown.message}`);
    throw thrown;
  }
}

async function walk(cursor: Cursor): Promise<WalkedHeader> {
  const kept: Buffer[] = [];
  const version = await readStart(cursor);
  const tensorCount = await cursor.count('tensors', MOST_TENSORS);
  const keyCount = await cursor.count('keys', MOST_KEYS);
  kept.push(cursor.sinceMark());
  const listLengths = new Map<string, number>();
  const names = new Set<string>();
  let alignment = 32;
  for (let index = 0; index < keyCount; index++) {
    cursor.mark();
    const key = onlyOnce(names, await cursor.text(LONGEST_KEY));
    const type = await cursor.u32();
    const head = cursor.sinceMark();
    if (key === 'general.alignment' && type === U32) {
      cursor.mark();
      alignment = await cursor.u32();
      if (alignment === 0 || alignment % 8 !== 0 || alignment > BLOCK_BYTES)
        throw new Unbelievable(`has an alignment of ${alignment}, so it is no usable GGUF file.`);
      kept.push(head, cursor.sinceMark());
    } else if (type === ARRAY) {
      kept.push(head, await walkList(cursor, key, listLengths));
    } else {
      kept.push(head, await walkValue(cursor, type));
    }
  }
  names.clear();
  for (let index = 0; index < tensorCount; index++) kept.push(await walkTensor(cursor, names));
  const dataOffset = Math.ceil(cursor.position / alignment) * alignment;
  return { version, condensed: Buffer.concat(kept), listLengths, dataOffset };
}

/** The file's version. */
async function readStart(cursor: Cursor): Promise<number> {
  cursor.mark();
  if ((await cursor.u32()) !== MAGIC)
    throw new Unbelievable('does not begin with GGUF, so it is no GGUF file.');
  const version = await cursor.u32();
  if (version === 1)
    throw new Unbelievable('is of GGUF version 1, which llama.cpp no longer reads: convert it again.');
  if (version !== 2 && version !== 3) {
    const swapped = version !== 0 && (version & 0xffff) === 0;
    throw new Unbelievable(
      swapped
        ? 'is a big-endian GGUF file, which this machine can not load.'
        : `is of GGUF version ${version}; versions 2 and 3 are known.`,
    );
  }
  return version;
}

async function walkValue(cursor: Cursor, type: number): Promise<Buffer> {
  cursor.mark();
  if (type === STRING) {
    const length = await cursor.u64();
    const head = cursor.sinceMark();
    cursor.mark();
    await cursor.skip(length);
    if (length > LONGEST_KEPT_TEXT) return Buffer.alloc(8);
    return Buffer.concat([head, cursor.sinceMark()]);
  }
  const bytes = VALUE_BYTES[type] ?? null;
  if (bytes === null)
    throw new Unbelievable(`has a value of the unknown type ${type}, so it can not be read.`);
  await cursor.skip(bytes);
  return cursor.sinceMark();
}

async function walkList(cursor: Cursor, key: string, lengths: Map<string, number>): Promise<Buffer> {
  cursor.mark();
  const type = await cursor.u32();
  const empty = Buffer.concat([cursor.sinceMark(), Buffer.alloc(8)]);
  const count = await cursor.u64();
  if (count > MOST_ELEMENTS)
    throw new Unbelievable(`says that ${key} has ${count} elements, which can not be.`);
  lengths.set(key, count);
  if (type === STRING) {
    for (let index = 0; index < count; index++) {
      const length = cursor.has(8) ? cursor.u64Here() : await cursor.u64();
      if (!cursor.skipHere(length)) await cursor.skip(length);
    }
    return empty;
  }
  const bytes = VALUE_BYTES[type] ?? null;
  if (bytes === null)
    throw new Unbelievable(`has a list of the unknown type ${type}, so it can not be read.`);
  if (count > LONGEST_KEPT_LIST) {
    await cursor.skip(count * bytes);
    return empty;
  }
  await cursor.skip(count * bytes);
  return cursor.sinceMark();
}

/** llama.cpp refuses a name that stands twice; counted, it would be twice as much. */
function onlyOnce(names: Set<string>, name: string): string {
  if (names.has(name)) throw new Unbelievable(`names ${shown(name)} twice, so it is no usable GGUF file.`);
  names.add(name);
  return name;
}

function shown(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name;
}

async function walkTensor(cursor: Cursor, names: Set<string>): Promise<Buffer> {
  cursor.mark();
  onlyOnce(names, await cursor.text(LONGEST_TENSOR_NAME));
  const dimensions = await cursor.u32();
  if (dimensions > MOST_DIMENSIONS)
    throw new Unbelievable(`has a tensor of ${dimensions} dimensions, which can not be.`);
  await cursor.skip(dimensions * 8 + 4 + 8);
  return cursor.sinceMark();
}

/** A place in the file, and a block of bytes around it. Throws `CutOff` at the file's end. */
class Cursor {
  readonly #file: FileHandle;
  readonly #fileBytes: number;
  #block = Buffer.alloc(0);
  /** Where `#block` begins in the file. */
  #blockAt = 0;
  #at = 0;
  #mark = 0;

  constructor(file: FileHandle, fileBytes: number) {
    this.#file = file;
    this.#fileBytes = fileBytes;
  }

  get position(): number {
    return this.#blockAt + this.#at;
  }

  has(bytes: number): boolean {
    return this.#at + bytes <= this.#block.length;
  }

  /** Bytes are kept from here on. Between two marks at most a key or a short list is read. */
  mark(): void {
    this.#mark = this.position;
  }

  /** Only bytes that a caller keeps; longer stretches are skipped without being read. */
  sinceMark(): Buffer {
    const start = this.#mark - this.#blockAt;
    return start < 0 ? Buffer.alloc(0) : Buffer.from(this.#block.subarray(start, this.#at));
  }

  async u32(): Promise<number> {
    await this.#ensure(4);
    this.#at += 4;
    return this.#block.readUInt32LE(this.#at - 4);
  }

  /** As a number; one that is too large for that is far too large for a file. */
  async u64(): Promise<number> {
    await this.#ensure(8);
    return this.u64Here();
  }

  /** Only where `has(8)`. */
  u64Here(): number {
    const low = this.#block.readUInt32LE(this.#at);
    const high = this.#block.readUInt32LE(this.#at + 4);
    this.#at += 8;
    return high * 4_294_967_296 + low;
  }

  async count(what: string, most: number): Promise<number> {
    const count = await this.u64();
    if (count > most) throw new Unbelievable(`says that it has ${count} ${what}, which can not be.`);
    return count;
  }

  async text(longest: number): Promise<string> {
    const length = await this.u64();
    if (length > longest) throw new Unbelievable(`has a name of ${length} bytes, which can not be.`);
    await this.#ensure(length);
    this.#at += length;
    return this.#block.toString('utf8', this.#at - length, this.#at);
  }

  /** False: the end lies outside of the block, and nothing was done. */
  skipHere(bytes: number): boolean {
    if (this.#at + bytes > this.#block.length) return false;
    this.#at += bytes;
    return true;
  }

  async skip(bytes: number): Promise<void> {
    if (this.skipHere(bytes)) return;
    this.#check(bytes);
    // A short stretch may be kept by the caller; a long one is passed over.
    if (bytes <= BLOCK_BYTES) {
      await this.#ensure(bytes);
      this.#at += bytes;
      return;
    }
    this.#blockAt = this.position + bytes;
    this.#at = 0;
    this.#block = Buffer.alloc(0);
  }

  /** So many more bytes are in the file, and still a header's. */
  #check(bytes: number): void {
    if (this.position + bytes > this.#fileBytes) throw new CutOff();
    if (this.position + bytes > MOST_HEADER_BYTES)
      throw new Unbelievable(
        `says that its header is longer than ${MOST_HEADER_BYTES} bytes, which can not be.`,
      );
  }

  /** What was marked stays in the block. */
  async #ensure(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    this.#check(bytes);
    const { position } = this;
    const from = this.#mark >= this.#blockAt && position - this.#mark <= LONGEST_KEPT ? this.#mark : position;
    const length = Math.min(position - from + Math.max(BLOCK_BYTES, bytes), this.#fileBytes - from);
    const block = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#file.read(block, filled, length - filled, from + filled);
      if (bytesRead === 0) throw new CutOff();
      filled += bytesRead;
    }
    this.#block = block;
    this.#blockAt = from;
    this.#at = position - from;
  }
}
