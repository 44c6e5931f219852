import type { BackendSetting } from '../../../shared/settings.ts';
import { laneKey } from './lane-key.ts';
import type { LaneSetup } from './lane-setup.ts';
import { readLocalNames } from './local-names.ts';

/**
 * The lanes of a backend of this machine, in the order a turn takes them: that of its front port,
 * where it has one, then its own. Empty for one elsewhere, which has none.
 */
export function lanesOfBackend(
  { url, front }: Pick<BackendSetting, 'url' | 'front'>,
  names = readLocalNames,
): readonly string[] {
  if (url === null) return [];
  const key = laneKey(url, names);
  if (key.kind !== 'local') return [];
  return front === null ? [key.name] : [`${key.host}_${front}`, key.name];
}

/**
 * What the config says of lanes, as files that every process reads. A backend that was found by
 * itself has said nothing of lanes, and nor has one that names neither `lanes` nor `front`.
 */
export function laneSetups(
  backends: readonly BackendSetting[],
  names = readLocalNames,
): readonly LaneSetup[] {
  return backends.flatMap((backend): readonly LaneSetup[] => {
    if (backend.found || (backend.lanes === null && backend.front === null)) return [];
    const lanes = lanesOfBackend(backend, names);
    // Either port means both: a turn that knows only one of them must meet those that know the other.
    const means = lanes.length > 1 ? { lanes, models: {} } : null;
    return lanes.map((name) => ({ name, width: backend.lanes, means }));
  });
}
