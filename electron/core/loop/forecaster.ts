import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { Settings } from '../../../shared/settings.ts';
import { buildOf } from '../backends/server-props.ts';
import type { EventStore } from '../events/event-store.ts';
import { checkedFootprints } from '../ledger/footprint/checked-footprints.ts';
import { type FootprintSource, footprintsInChild } from '../ledger/footprint/footprint-source.ts';
import { type HubFolders, hubFileArgs, hubFolders } from '../ledger/footprint/hub-files.ts';
import { placedArgs } from '../ledger/footprint/ollama-context.ts';
import {
  type FileSizes,
  learn,
  loadOf,
  type MeasuredFootprint,
  predict,
  withEarlier,
} from '../ledger/prediction.ts';
import { version } from '../version.ts';
import type { DevicePlace, Forecaster } from './load-watch.ts';
import type { ModelView } from './model-view.ts';

/** The fact that measured footprints are kept as. */
export const FOOTPRINTS = 'footprints';
const CHECKED_KEY = 'checked-footprints';

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

export interface ForecasterParts {
  readonly files?: FileSizes;
  /** Ours, at once. */
  readonly footprints?: FootprintSource;
  /** llama.cpp's own, in the background; null: not asked. */
  readonly reference?: FootprintSource | null;
  /** Where llama.cpp keeps what it has downloaded. */
  readonly downloads?: HubFolders;
  /** How long ours stands alone first. */
  readonly referenceAfterMs?: number;
}

/**
 * Predictions from what was measured before, the operator's figures, the files' headers and their sizes;
 * measurements are kept, and so is what llama.cpp itself said of a file.
 */
export async function durableForecaster(
  store: Pick<EventStore, 'get' | 'set'>,
  settings: () => Settings,
  parts: ForecasterParts = {},
): Promise<Forecaster> {
  const files = parts.files ?? diskSizes;
  const downloads = parts.downloads ?? hubFolders(process.env, homedir());
  const ours = parts.footprints ?? footprintsInChild(process.execPath);
  let measured = parseMeasured(await store.get(FOOTPRINTS));
  /** Who has asked for which load, to be told of a better answer. */
  const askers = new Map<string, Set<string>>();
  let tellBetter: (modelId: string) => void = () => undefined;
  const footprints =
    parts.reference == null
      ? ours
      : await checkedFootprints({
          ours,
          reference: parts.reference,
          version: version(),
          store: {
            load: () => store.get(CHECKED_KEY),
            save: (value) => void store.set(CHECKED_KEY, value),
          },
          onBetter: (load) => {
            const key = JSON.stringify(load);
            for (const id of askers.get(key) ?? []) tellBetter(id);
            askers.delete(key);
          },
          ...(parts.referenceAfterMs === undefined ? {} : { afterMs: parts.referenceAfterMs }),
        });
  const request = (view: ModelView, place: DevicePlace | null) => ({
    id: view.id,
    args: argsAt(view, place),
    modelPath: view.observed.modelPath,
    deviceId: view.deviceId,
  });
  return {
    async predict(view, place) {
      const asked = {
        ...request(view, place),
        ...place,
        fileArgs: await fileArgsOf(view, downloads),
        build: buildOf(view.backendVersion ?? null),
      };
      remember(askers, JSON.stringify(loadOf(asked)), view.id);
      return predict(asked, measured, settings().footprints, files, footprints);
    },
    async footprint(view, place, context) {
      const { modelPath } = view.observed;
      const args = argsAt(view, place) ?? [];
      const fileArgs = await fileArgsOf(view, downloads);
      // What-if figures are ours, at once: llama.cpp is asked about what is really set.
      const source = context === 'set' ? footprints : ours;
      const estimated = await source.footprintOf({
        modelPath,
        args: [...withContext(args, context), ...fileArgs],
        kind: place.deviceKind ?? 'cuda',
        build: buildOf(view.backendVersion ?? null),
      });
      return estimated.ok ? estimated.value : null;
    },
    learn(view, bytes) {
      measured = learn(measured, request(view, null), bytes);
      void store.set(FOOTPRINTS, measured);
    },
    takeUp(kept) {
      measured = withEarlier(parseMeasured(kept), measured);
      void store.set(FOOTPRINTS, measured);
    },
    onBetter(listener) {
      tellBetter = listener;
    },
  };
}

/** Ollama goes by all its cards together. null for the place: nothing is known of it. */
function argsAt(view: ModelView, place: DevicePlace | null): readonly string[] | null {
  return placedArgs(view.observed.args, place?.kindTotalBytes ?? place?.deviceTotalBytes ?? null);
}

/** Of models that are named by their repositories alone; empty: none is, or their files are not to be found. */
function fileArgsOf(view: ModelView, downloads: HubFolders): Promise<readonly string[]> {
  const { args, modelPath } = view.observed;
  return hubFileArgs([...(args ?? []), ...(modelPath === null ? [] : ['--model', modelPath])], downloads);
}

/** Loads that nobody has been told of for long are forgotten. */
const ASKERS_KEPT = 500;

function remember(askers: Map<string, Set<string>>, load: string, id: string): void {
  const ids = askers.get(load) ?? new Set();
  ids.add(id);
  askers.set(load, ids);
  const [oldest] = askers.keys();
  if (askers.size > ASKERS_KEPT && oldest !== undefined) askers.delete(oldest);
}

const CONTEXT_FLAGS = new Set(['-c', '--ctx-size']);

/** The same command line with another context; 0 is what the model was trained for (llama.cpp, common/arg.cpp). */
function withContext(args: readonly string[], context: number | 'set' | 'trained'): readonly string[] {
  if (context === 'set') return args;
  const rest = args.filter((arg, at) => !CONTEXT_FLAGS.has(arg) && !CONTEXT_FLAGS.has(args[at - 1] ?? ''));
  return [...rest, '-c', String(context === 'trained' ? 0 : context)];
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
