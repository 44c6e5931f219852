import { readFileSync } from 'node:fs';

/** The version of package.json, which is the only place that has it. */
export function version(): string {
  const found: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const has = typeof found === 'object' && found !== null && 'version' in found;
  return has && typeof found.version === 'string' ? found.version : 'unknown';
}
