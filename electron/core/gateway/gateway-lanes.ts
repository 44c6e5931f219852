import type { BackendSetting } from '../../../shared/settings.ts';
import { laneSetups, lanesOfBackend, lanesOfModel } from '../gate/backend-lanes.ts';
import type { LocalNames } from '../gate/lane-key.ts';
import { readLocalNames } from '../gate/local-names.ts';
import type { LaneMeaning } from '../gate/means.ts';
import type { ModelView } from '../loop/model-view.ts';

/** A file of more than a page or two is read by every turn; models beyond these go by `backend/model`. */
const MOST_MODELS = 500;

/**
 * The lanes that our gateway's own port stands for: those of the backend that a model's name leads to
 * (`resolveRoute`). Without a model, or with one that nobody has, the only backend is meant; of several
 * none is, and the turn takes no lane: the gateway takes the right one with each of its requests, and a
 * turn that held them all would keep others from backends that it never asks.
 * null: the config sets no lanes, so this port is as any other.
 */
export function lanesBehindGateway(
  backends: readonly BackendSetting[],
  views: readonly Pick<ModelView, 'backend' | 'observed'>[],
  port: number,
  names: () => LocalNames = readLocalNames,
): Omit<LaneMeaning, 'writer'> | null {
  if (laneSetups(backends, names).length === 0) return null;
  const lanes = new Map<string, readonly string[]>();
  for (const setting of backends) {
    const own = lanesOfBackend(setting, names);
    // One that is this very gateway has no lane of its own.
    const loops = own.some((name) => name.endsWith(`_${port}`));
    if (setting.url !== null) lanes.set(setting.name, loops ? [] : own);
  }
  const [only] = lanes.values();
  if (only !== undefined && lanes.size === 1) {
    const [setting] = backends;
    const each = setting?.lane === 'model' ? lanesByModel(setting, views, names) : {};
    return only.length === 0 ? null : { lanes: only, models: each };
  }
  const models = new Map<string, readonly string[]>();
  for (const [name, own] of lanes) models.set(`${name}/*`, own);
  const bare = new Map<string, string | null>();
  for (const { backend, observed } of views) {
    for (const name of new Set([observed.name, ...observed.aliases])) {
      const before = bare.get(name);
      bare.set(name, before === undefined || before === backend ? backend : null);
    }
  }
  for (const [name, backend] of [...bare].slice(0, MOST_MODELS)) {
    const own = backend === null ? undefined : lanes.get(backend);
    if (own !== undefined) models.set(name, own);
  }
  for (const setting of backends)
    if (setting.lane === 'model' && (lanes.get(setting.name)?.length ?? 0) > 0)
      for (const [name, own] of Object.entries(lanesByModel(setting, views, names)))
        if (name.includes('/') || bare.get(name) === setting.name) models.set(name, own);
  return { lanes: [], models: Object.fromEntries(models) };
}

/** By `backend/model`, its bare name and its other names. */
function lanesByModel(
  setting: BackendSetting,
  views: readonly Pick<ModelView, 'backend' | 'observed'>[],
  names: () => LocalNames,
): Readonly<Record<string, readonly string[]>> {
  const mine = views.filter((view) => view.backend === setting.name).slice(0, MOST_MODELS);
  return Object.fromEntries(
    mine.flatMap(({ observed }) => {
      const own = lanesOfModel(setting, observed.name, names);
      return [`${setting.name}/${observed.name}`, observed.name, ...observed.aliases].map(
        (name) => [name, own] as const,
      );
    }),
  );
}
