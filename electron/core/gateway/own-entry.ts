import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import { type LocalNames, laneKey } from '../gate/lane-key.ts';
import { readLocalNames } from '../gate/local-names.ts';
import type { ModelView } from '../loop/model-view.ts';
import { frontRoute, type Route, resolveRoute } from './route.ts';

/** What is ours on this machine. */
export interface OwnPlaces {
  readonly backends: readonly BackendSetting[];
  readonly views: readonly ModelView[];
  /** Ports of the gateway itself. */
  readonly ports: readonly number[];
}

/**
 * Where an entry of the fallback chain leads that is one of our own backends, by its own port or its
 * front, or our own gateway, which would otherwise be asked again and again by itself. null: it is
 * another's. Errors: `unknown_model`.
 */
export function ownRoute(
  url: string,
  model: string | null,
  { backends, views, ports }: OwnPlaces,
  names: () => LocalNames = readLocalNames,
): Result<Route> | null {
  const key = laneKey(url, names);
  if (key.kind !== 'local') return null;
  for (const setting of backends) {
    if (setting.url === null) continue;
    const own = laneKey(setting.url, names);
    if (own.kind !== 'local' || (own.port !== key.port && setting.front !== key.port)) continue;
    const route = frontRoute(model, views, setting, setting.url);
    const lists = views.some((view) => view.backend === setting.name);
    return route.view === null && lists && model !== null
      ? fail('unknown_model', `${setting.name} has no model ${model}.`)
      : ok({ ...route, sentName: model });
  }
  return ports.includes(key.port) ? named(resolveRoute(model, views, backends), model) : null;
}

/** The entry's own name for the model goes out, not the client's. */
function named(route: Result<Route>, model: string | null): Result<Route> {
  return route.ok ? ok({ ...route.value, sentName: route.value.sentName ?? model }) : route;
}
