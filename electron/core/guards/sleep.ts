import { formatBytes } from '../../../shared/format.ts';
import { type GuardView, isCandidate, isQuiet, modelsOn, usableDevices } from './view.ts';
import { unload } from './wording.ts';
import type { Decision } from './world.ts';

/** While asleep big models leave: at once when quiet, else after their request; so do those loaded around us. */
export function sleepRule(view: GuardView): readonly Decision[] {
  if (!view.world.asleep) return [];
  return usableDevices(view.world).flatMap((device) =>
    modelsOn(view, device.id)
      .filter((model) => model.big && isCandidate(view, model) && isQuiet(model))
      .map((model) =>
        unload(
          model,
          'sleep',
          `big models are asleep and it serves no request; it holds ${formatBytes(model.bytes)}`,
          { freeBytes: device.freeBytes },
        ),
      ),
  );
}
