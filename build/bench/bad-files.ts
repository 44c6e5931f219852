import { execFileSync, spawnSync } from 'node:child_process';
import { symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ggufHeader, writeGguf } from '../models/gguf-writer.ts';
import { llama } from '../models/synthetic-architectures.ts';

/** What it costs to be given a file that is none. */
export interface BadFileCost {
  readonly name: string;
  /** Of reading alone, in a process that has started. */
  readonly readMs: number;
  /** Most resident memory beyond that of the same process with a good file; may be negative. */
  readonly extraBytes: number;
  /** One sentence; null: it was not refused, or the process failed. */
  readonly sentence: string | null;
}

const READER = fileURLToPath(new URL('./bad-file-reader.ts', import.meta.url));
const LIMIT_MS = 20_000;

export async function badFileCosts(folder: string): Promise<readonly BadFileCost[]> {
  const at = (name: string): string => join(folder, name);
  const whole = ggufHeader(llama());
  const patched = (offset: number, value: bigint): Buffer => {
    const bytes = Buffer.from(whole);
    bytes.writeBigUInt64LE(value, offset);
    return bytes;
  };
  const version = (value: number): Buffer => {
    const bytes = Buffer.from(whole);
    bytes.writeUInt32LE(value, 4);
    return bytes;
  };
  const list = whole.indexOf('tokenizer.ggml.tokens') + 'tokenizer.ggml.tokens'.length + 8;
  const layers = Buffer.from(whole);
  const blockCount = 'llama.block_count';
  layers.writeUInt32LE(2 ** 32 - 1, layers.indexOf(blockCount) + blockCount.length + 4);
  const good = await writeGguf(at('good.gguf'), llama());
  const cut = await writeGguf(at('cut.gguf'), llama());
  await truncate(cut, 100_000);
  await Promise.all([
    writeFile(at('magic.gguf'), 'GGML, long ago'),
    writeFile(at('v1.gguf'), version(1)),
    writeFile(at('v2.gguf'), version(2)),
    writeFile(at('tensors.gguf'), patched(8, 2n ** 63n)),
    writeFile(at('keys.gguf'), patched(16, 2n ** 63n)),
    writeFile(at('list.gguf'), patched(list, 2n ** 63n)),
    writeFile(at('layers.gguf'), layers),
    writeFile(at('empty.gguf'), ''),
    ...[1, 2].map((part) =>
      symlink(`ring-0000${3 - part}-of-00002.gguf`, at(`ring-0000${part}-of-00002.gguf`)),
    ),
  ]);
  execFileSync('mkfifo', [at('pipe.gguf')]);
  const base = read(good);
  const files: readonly (readonly [string, string])[] = [
    ['cut off', cut],
    ['other magic', at('magic.gguf')],
    ['version 1', at('v1.gguf')],
    ['version 2', at('v2.gguf')],
    ['2^63 tensors', at('tensors.gguf')],
    ['2^63 keys', at('keys.gguf')],
    ['2^63 words', at('list.gguf')],
    ['2^32 layers', at('layers.gguf')],
    ['parts in a ring', at('ring-00001-of-00002.gguf')],
    ['a folder', folder],
    ['a pipe', at('pipe.gguf')],
    ['0 bytes', at('empty.gguf')],
  ];
  return files.map(([name, path]) => {
    const seen = read(path);
    return { name, readMs: seen.ms, extraBytes: seen.bytes - base.bytes, sentence: seen.sentence };
  });
}

function read(path: string): { ms: number; bytes: number; sentence: string | null } {
  const ran = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', READER, path], {
    encoding: 'utf8',
    timeout: LIMIT_MS,
  });
  try {
    return JSON.parse(ran.stdout);
  } catch {
    return { ms: Number.NaN, bytes: Number.NaN, sentence: null };
  }
}
