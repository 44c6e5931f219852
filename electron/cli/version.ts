import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of package.json, which is the only place that has it. */
export function version(): string {
  const file = join(import.meta.dirname, '..', '..', 'package.json');
  const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
  const has = typeof found === 'object' && found !== null && 'version' in found;
  return has && typeof found.version === 'string' ? found.version : 'unknown';
}
