/** Which colour stands for which model. Pure. */
import type { LandlordState } from '../../shared/state.ts';

/** As many as styles.css tells apart. */
export const MODEL_TONES = 6;

/**
 * A model keeps its colour as long as the list of models stays; two that hold memory at once share
 * one only when there are more of them than colours.
 */
export function toneOf(state: {
  readonly models: readonly Pick<LandlordState['models'][number], 'id' | 'status'>[];
}): (modelId: string) => string {
  const all = state.models.map((model) => model.id).sort();
  const present = state.models
    .filter((model) => model.status !== 'unloaded' && model.status !== 'failed')
    .map((model) => model.id)
    .sort();
  const taken = new Map<number, string>();
  const chosen = new Map<string, number>();
  for (const id of present) {
    const wanted = all.indexOf(id) % MODEL_TONES;
    let tone = wanted;
    for (let step = 0; step < MODEL_TONES; step += 1) {
      tone = (wanted + step) % MODEL_TONES;
      if (!taken.has(tone)) break;
      tone = wanted;
    }
    taken.set(tone, id);
    chosen.set(id, tone);
  }
  return (modelId) => `m${chosen.get(modelId) ?? Math.max(0, all.indexOf(modelId)) % MODEL_TONES}`;
}
