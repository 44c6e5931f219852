import { type CommandContext, loadModel } from './load-command.ts';
import { outcomeOf } from './room.ts';

const UNLOAD_LIMIT_MS = 60_000;
const LOAD_LIMIT_MS = 600_000;

/** Unloads a model once it is idle and loads it again; false: that did not come about. `reason`: a sentence. */
export async function reloadModel(
  context: CommandContext,
  modelId: string,
  reason: string,
): Promise<boolean> {
  const { loop } = context;
  const outcome = outcomeOf(loop, modelId, UNLOAD_LIMIT_MS);
  loop.executor.unload({
    modelId,
    cause: 'person',
    requireIdle: true,
    reason,
    numbers: {},
    forModelId: null,
  });
  if ((await outcome)?.type !== 'left') return false;
  const view = loop.models.get(modelId);
  if (view === null) return false;
  return (await loadModel(context, view, false, AbortSignal.timeout(LOAD_LIMIT_MS))).ok;
}
