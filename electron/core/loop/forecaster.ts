import { stat } from 'node:fs/promises';
import type { Settings } from '../../../shared/settings.ts';
import { buildOf } from '../backends/server-props.ts';
import type { EventStore } from '../events/event-store.ts';
import { type FootprintSource, footprintsInChild } from '../ledger/footprint/footprint-source.ts';
import { type FileSizes, learn, type MeasuredFootprint, predict } from '../ledger/prediction.ts';
import type { Forecaster } from './load-watch.ts';
import type { ModelView } from './model-view.ts';

const KEY = 'footprints';

const diskSizes: FileSizes = {
  async sizeOf(path) {
    try {
      const found = await stat(path);
      return found.isFile() ? found.size : null;
    } catch {
      return null;
    }
  },
};

/** Predictions from what was measured before, the operator's figures, the files' headers and their sizes; measurements are kept. */
export async function durableForecaster(
  store: EventStore,
  settings: () => Settings,
  files: FileSizes = diskSizes,
  footprints: FootprintSource = footprintsInChild(process.execPath),
): Promise<Forecaster> {
  let measured = parseMeasured(await store.get(KEY));
  const request = (view: ModelView) => ({
    id: view.id,
    args: view.observed.args,
    modelPath: view.observed.modelPath,
  });
  return {
    predict: (view, place) =>
      predict(
        { ...request(view), ...place, build: buildOf(view.backendVersion ?? null) },
        measured,
        settings().footprints,
        files,
        footprints,
      ),
    learn(view, bytes) {
      measured = learn(measured, request(view), bytes);
      void store.set(KEY, measured);
    },
  };
}

function parseMeasured(value: unknown): readonly MeasuredFootprint[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (one): one is MeasuredFootprint =>
      typeof one === 'object' &&
      one !== null &&
      typeof one.id === 'string' &&
      typeof one.key === 'string' &&
      typeof one.bytes === 'number',
  );
}
