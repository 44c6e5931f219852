import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** All TypeScript files below a folder; absolute. */
export function layerFiles(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}
