import { fileURLToPath } from 'node:url';
import { ensureSyntheticGguf, type SyntheticShape } from '../../electron/core/demo/synthetic-gguf.ts';

export {
  LARGE_SHAPE,
  MIDDLE_SHAPE,
  type SyntheticShape,
  TINY_SHAPE,
  writeSyntheticGguf,
} from '../../electron/core/demo/synthetic-gguf.ts';

/** Models are the same in every run, so they are kept between runs. */
const cacheDir = fileURLToPath(new URL('../../node_modules/.cache/gguf', import.meta.url));

/** Path of a synthetic model of this shape. */
export async function gguf(shape: SyntheticShape): Promise<string> {
  return await ensureSyntheticGguf(cacheDir, shape);
}
