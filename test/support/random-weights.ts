import { open } from 'node:fs/promises';
import { type GgufSpec, ggufHeader, tensorBytes, writeGguf } from './gguf-writer.ts';

const F32 = 0;
const ALIGNMENT = 32;

/**
 * A model of this spec with weights that are always the same and look random, so that what it says depends
 * on all it was told. Norms stay near 1, decays of recurrent layers negative, or it overflows.
 */
export async function writeRandom(path: string, spec: GgufSpec, seed = 12_345): Promise<string> {
  await writeGguf(path, spec);
  const gauss = gaussian(seed);
  const file = await open(path, 'r+');
  try {
    let at = ggufHeader(spec).length;
    for (const tensor of spec.tensors) {
      const bytes = tensorBytes(tensor);
      if ((tensor.type ?? F32) === F32) {
        const next = weightsOf(tensor.name, gauss);
        await file.write(Buffer.from(Float32Array.from({ length: bytes / 4 }, next).buffer), 0, bytes, at);
      }
      at += Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    }
  } finally {
    await file.close();
  }
  return path;
}

function weightsOf(name: string, gauss: () => number): () => number {
  if (name.includes('norm')) return () => 1 + 0.1 * gauss();
  if (/ssm_(?:a|dt)/.test(name)) return () => -0.3 * Math.abs(gauss());
  return () => 0.15 * gauss();
}

/** Box and Muller's, over a linear congruence. */
function gaussian(seed: number): () => number {
  let state = seed;
  const share = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  return () => Math.sqrt(-2 * Math.log(share() + 1e-12)) * Math.cos(2 * Math.PI * share());
}
