/** Pieces of the config as YAML, for what the page itself writes. Pure. */
import type { BackendState } from '../../shared/state.ts';

/** The list of backends with one more at its end; what a person wrote stays as it is. */
export function withBackend(
  yaml: string | null,
  backend: Pick<BackendState, 'name' | 'kind' | 'url'>,
): string {
  const entry = `{ name: ${plainName(backend.name)}, kind: ${backend.kind}, url: ${JSON.stringify(backend.url)} }`;
  const list = (yaml ?? '').trim();
  if (list === '' || list === '[]') return `- ${entry}`;
  // A flow list ends with its bracket; a block list has an item a line.
  if (list.startsWith('[') && list.endsWith(']'))
    return `${list.slice(0, -1).trimEnd().replace(/,$/, '')}, ${entry} ]`;
  return `${list}\n- ${entry}`;
}

/** As it is where YAML takes it for a text; in quotes where it could be something else. */
function plainName(name: string): string {
  return /^[a-z][a-z0-9-]*$/i.test(name) && !/^(null|true|false|yes|no|on|off|y|n)$/i.test(name)
    ? name
    : JSON.stringify(name);
}
