import { readFileSync, statSync } from 'node:fs';
import { type LaneFiles, laneFiles } from './lane-files.ts';

/**
 * Ports that are not a lane of their own. A backend with a front port has two, of which a turn takes
 * the front's first; our gateway's port means the backend that the model is on. The runtime writes
 * this, so that a turn of another process with no configuration takes the right ones:
 *
 *   {"schema":"vram-landlord/gate-means/1","lanes":["127.0.0.1_8082","127.0.0.1_8081"],
 *    "models":{"qwen-27b":["127.0.0.1_8081"]}}
 */
export interface LaneMeaning {
  /** For a model that `models` does not name. Empty: that turn takes no lane. */
  readonly lanes: readonly string[];
  readonly models: Readonly<Record<string, readonly string[]>>;
}

export const MEANS_SCHEMA = 'vram-landlord/gate-means/1';

const NAME = /^[0-9a-z.:-]+_\d{1,5}$/;

/** null for a text that is no such thing: then the lane is its own. */
export function parseMeaning(text: string): LaneMeaning | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || !('schema' in value) || value.schema !== MEANS_SCHEMA) {
    return null;
  }
  const lanes = 'lanes' in value ? laneNames(value.lanes) : [];
  const models: Record<string, readonly string[]> = {};
  if ('models' in value && typeof value.models === 'object' && value.models !== null) {
    for (const [model, names] of Object.entries(value.models)) {
      const parsed = laneNames(names);
      if (parsed !== null) models[model] = parsed;
    }
  }
  return lanes === null ? null : { lanes, models };
}

function laneNames(value: unknown): readonly string[] | null {
  if (!Array.isArray(value)) return null;
  const names = value.filter((name): name is string => typeof name === 'string' && NAME.test(name));
  return names.length === value.length ? names : null;
}

export function meaningText(meaning: LaneMeaning): string {
  return `${JSON.stringify({ schema: MEANS_SCHEMA, ...meaning })}\n`;
}

/** The lanes a turn takes, in the order all must take them in. */
export function lanesMeant(lane: LaneFiles, model: string | null): readonly LaneFiles[] {
  const meaning = readMeaning(lane);
  if (meaning === null) return [lane];
  const named = model !== null && Object.hasOwn(meaning.models, model) ? meaning.models[model] : undefined;
  return (named ?? meaning.lanes).map((name) => laneFiles(lane.root, name));
}

function readMeaning(lane: LaneFiles): LaneMeaning | null {
  try {
    if (statSync(lane.means, { throwIfNoEntry: false }) === undefined) return null;
    return parseMeaning(readFileSync(lane.means, 'utf8'));
  } catch {
    return null;
  }
}
