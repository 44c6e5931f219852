import type { BackendSetting } from '../../../shared/settings.ts';
import type { ModelView } from '../loop/model-view.ts';
import { barePath } from './endpoints.ts';
import type { Exchange } from './exchange.ts';
import type { Route } from './route.ts';

export interface Upstream {
  /** As the path names it: the model's name, or an alias. */
  readonly model: string;
  /** What that model's own server is asked, with its query. */
  readonly path: string;
}

const PREFIX = '/upstream/';

/**
 * llama-swap passes `/upstream/MODEL/…` on to the server of MODEL, whatever the path, and loads it for that
 * (its README). A name may have slashes in it: of those that are known the shortest is meant, and slashes that
 * follow one another count as one up to there (its findModelInPath). null: this is no such path of a model that is known.
 */
export function upstreamOf(
  path: string,
  front: BackendSetting,
  views: readonly ModelView[],
): Upstream | null {
  if (front.kind !== 'llama-swap') return null;
  const bare = barePath(path);
  if (!bare.startsWith(PREFIX)) return null;
  const names = new Set(
    views
      .filter((view) => view.backend === front.name)
      .flatMap((view) => [view.observed.name, ...view.observed.aliases]),
  );
  const parts = bare.slice(PREFIX.length).split('/');
  let model = '';
  for (const [index, part] of parts.entries()) {
    if (part === '') continue;
    model = model === '' ? part : `${model}/${part}`;
    if (!names.has(model)) continue;
    const queryAt = path.indexOf('?');
    const query = queryAt < 0 ? '' : path.slice(queryAt);
    return { model, path: `/${parts.slice(index + 1).join('/')}${query}` };
  }
  return null;
}

/** As it came where it goes to the model that it names; another model is asked for what was meant. */
export function pathAt(exchange: Exchange, { setting, view }: Route): string {
  const { pathModel, front } = exchange;
  if (pathModel === null) return exchange.path;
  const names = view === null ? [] : [view.observed.name, ...view.observed.aliases];
  return setting.name === front?.name && names.includes(pathModel) ? exchange.path : exchange.meantPath;
}
