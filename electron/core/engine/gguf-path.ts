import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { errnoOf } from '../errno.ts';

/** This absolute path, where a GGUF file is; a link stays one, since people move what it leads to. Errors: `bad_model_file`. */
export async function ggufPath(path: string): Promise<Result<string>> {
  try {
    // A pipe without a writer would be waited for.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const magic = Buffer.alloc(4);
      await handle.read(magic, 0, 4, 0);
      if (magic.toString('latin1') === 'GGUF') return ok(path);
    } finally {
      await handle.close();
    }
    return fail('bad_model_file', `${path} is no GGUF file.`);
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return fail('bad_model_file', `There is no file ${path}.`);
    return fail('bad_model_file', `${path} can't be read: ${messageOf(thrown)}.`);
  }
}

/** What a model of this file may be called where nobody says: `qwen3-4b-q4_k_m`. */
export function modelNameOf(path: string): string {
  const name = basename(path)
    .replace(/\.gguf$/i, '')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .replace(/-+$/, '');
  return name === '' ? 'model' : name.toLowerCase();
}
