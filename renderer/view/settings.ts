/** Pieces of the config as YAML, for what the page itself writes. Pure. */
import type { BackendState } from '../../shared/state.ts';

/** The list of backends with one more at its end; what a person wrote stays as it is. */
export function withBackend(
  yaml: string | null,
  backend: Pick<BackendState, 'name' | 'kind' | 'url'>,
): string {
  const entry = `{ name: ${backend.name}, kind: ${backend.kind}, url: ${JSON.stringify(backend.url)} }`;
  const list = (yaml ?? '').trim();
  if (list === '' || list === '[]') return `- ${entry}`;
  // A flow list ends with its bracket; a block list has an item a line.
  if (list.startsWith('[') && list.endsWith(']'))
    return `${list.slice(0, -1).trimEnd().replace(/,$/, '')}, ${entry} ]`;
  return `${list}\n- ${entry}`;
}
