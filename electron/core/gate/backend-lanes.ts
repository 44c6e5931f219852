import { createHash } from 'node:crypto';
import type { BackendSetting } from '../../../shared/settings.ts';
import { laneKey } from './lane-key.ts';
import type { LaneSetup } from './lane-setup.ts';
import { readLocalNames } from './local-names.ts';
import type { LaneMeaning } from './means.ts';

/** What of a backend says which lanes its turns take. */
export type LaneScope = Pick<BackendSetting, 'url' | 'front' | 'lane' | 'device'>;

/** Models by the names a request may give them, so far as they are known. */
export type ModelsOf = (backend: string) => readonly string[];

/**
 * The lanes of a backend of this machine, in the order a turn takes them: that of its front port,
 * where it has one, then its own, then its device's where it shares that. Empty for one elsewhere,
 * which has none.
 */
export function lanesOfBackend(scope: LaneScope, names = readLocalNames): readonly string[] {
  const { url, front } = scope;
  if (url === null) return [];
  const key = laneKey(url, names);
  if (key.kind !== 'local') return [];
  const own = front === null ? [key.name] : [`${key.host}_${front}`, key.name];
  return scope.lane === 'device' ? [...own, deviceLane(scope.device)] : own;
}

/** The lanes of one model of it. With a lane for each, models of one server do not wait for one another. */
export function lanesOfModel(scope: LaneScope, model: string, names = readLocalNames): readonly string[] {
  const lanes = lanesOfBackend(scope, names);
  const own = lanes.at(-1);
  if (scope.lane !== 'model' || own === undefined) return lanes;
  const hash = createHash('sha256').update(model).digest('hex').slice(0, 10);
  return [`${own.replace('_', '-')}-m${hash}_0`];
}

/** Taken after a backend's own, so that turns of two backends can not wait for each other. null: no device is named. */
function deviceLane(device: string | null): string {
  const name = (device ?? 'any').toLowerCase().replaceAll(/[^0-9a-z.:-]/g, '-');
  return `device-${name}_0`;
}

/**
 * What the config says of lanes, as files that every process reads. A backend that was found by
 * itself has said nothing of lanes, and nor has one that names neither `lanes` nor `front`.
 */
export function laneSetups(
  backends: readonly BackendSetting[],
  names = readLocalNames,
  modelsOf: ModelsOf = () => [],
): readonly LaneSetup[] {
  const setups = new Map<string, LaneSetup>();
  for (const backend of backends) {
    if (backend.found || (backend.lanes === null && backend.front === null)) continue;
    const lanes = lanesOfBackend(backend, names);
    const means = meaningOf(backend, lanes, names, modelsOf);
    for (const name of lanes) {
      // A device's lane is no port: it means itself, and is as wide as the narrowest of those that share it.
      const isShared = name.startsWith('device-');
      const before = setups.get(name);
      setups.set(name, {
        name,
        width: isShared ? narrower(before?.width ?? null, backend.lanes) : backend.lanes,
        means: isShared ? null : means,
      });
    }
    if (backend.lane !== 'model') continue;
    for (const model of modelsOf(backend.name))
      for (const name of lanesOfModel(backend, model, names))
        setups.set(name, { name, width: backend.lanes, means: null });
  }
  return [...setups.values()];
}

function narrower(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** Either port means both, and what they share: a turn that knows only one of them must meet those that know the other. */
function meaningOf(
  backend: BackendSetting,
  lanes: readonly string[],
  names: typeof readLocalNames,
  modelsOf: ModelsOf,
): LaneMeaning | null {
  const models =
    backend.lane === 'model'
      ? Object.fromEntries(
          modelsOf(backend.name).map((model) => [model, lanesOfModel(backend, model, names)]),
        )
      : {};
  return lanes.length > 1 || Object.keys(models).length > 0 ? { lanes, models } : null;
}
