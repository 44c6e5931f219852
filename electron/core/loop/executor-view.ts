import type { Executor, ExecutorView } from '../actuators/executor.ts';
import type { Clock } from '../clock.ts';
import { isOvertaken } from '../guards/one-big.ts';
import type { GuardMemory, GuardWorld } from '../guards/world.ts';
import type { Models } from './models.ts';
import type { Sight } from './sight.ts';

/** What the loop that carries out unloads by it knows at that moment. */
export interface LoopSight {
  readonly models: Models;
  readonly sight: Sight;
  readonly executor: Pick<Executor, 'operations'>;
  /** null before the first step. */
  readonly world: GuardWorld | null;
  readonly memory: GuardMemory;
}

export function executorView(loop: LoopSight, clock: Clock): ExecutorView {
  return {
    status: (id) => loop.models.get(id)?.observed.status ?? null,
    heldBytes: (id) => loop.models.get(id)?.measuredBytes ?? null,
    deviceOf: (id) => loop.models.get(id)?.deviceId ?? null,
    free: (id) => loop.sight.free(id, clock.monotonicMs()),
    undisturbed: (deviceId, modelId) =>
      loop.models.undisturbed(deviceId, modelId, loop.executor.operations()),
    isOvertaken: ({ cause, modelId }) =>
      cause === 'max_big' && loop.world !== null && isOvertaken(loop.world, loop.memory, modelId),
  };
}
