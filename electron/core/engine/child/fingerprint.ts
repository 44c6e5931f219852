import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

const HEAD_BYTES = 1 << 20;
const SAMPLES = 64;
const SAMPLE_BYTES = 4096;

/**
 * Tells one model's file from another's without reading gigabytes: its size, its first MiB (names, shape,
 * tokenizer) and 64 samples of its weights, since two trainings of one model have the same header.
 */
export async function fingerprintOf(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const hash = createHash('sha256').update(`${size}\n`);
    const head = Buffer.alloc(Math.min(size, HEAD_BYTES));
    await file.read(head, 0, head.length, 0);
    hash.update(head);
    const sample = Buffer.alloc(SAMPLE_BYTES);
    for (let index = 0; index < SAMPLES; index += 1) {
      const at = head.length + Math.floor(((size - head.length) * index) / SAMPLES);
      const { bytesRead } = await file.read(sample, 0, SAMPLE_BYTES, at);
      hash.update(sample.subarray(0, bytesRead));
    }
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}
