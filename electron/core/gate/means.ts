import { type LaneFiles, laneFiles } from './lane-files.ts';
import { isGone } from './process-start.ts';
import { readSmallFile } from './small-file.ts';

/**
 * Ports that are not a lane of their own. A backend with a front port has two, of which a turn takes
 * the front's first; our gateway's port means the backend that the model is on. The runtime writes
 * this, so that a turn of another process with no configuration takes the right ones:
 *
 *   {"schema":"vram-landlord/gate-means/1","lanes":["127.0.0.1_8082","127.0.0.1_8081"],
 *    "models":{"qwen-27b":["127.0.0.1_8081"],"router/*":["127.0.0.1_8081"]}}
 */
export interface LaneMeaning {
  /** For a model that `models` does not name. Empty, beside models that are named: that turn takes no lane. */
  readonly lanes: readonly string[];
  /** By a model's name, or `backend/*` for all whose name begins with `backend/`. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  /** The process that stands for it: once that is gone, the port is as any other. Left out: it stands by itself. */
  readonly writer?: MeaningWriter;
}

export interface MeaningWriter {
  readonly pid: number;
  /** Clock ticks since boot; null where there is no /proc. */
  readonly startTime: number | null;
}

export const MEANS_SCHEMA = 'vram-landlord/gate-means/1';

const NAME = /^[0-9a-z.:-]+_\d{1,5}$/;

/** One turn that takes more lanes than this is a mistake in the file. */
const MOST_LANES = 16;

/** null for a text that is no such thing, or that names no lane at all: then the lane is its own. */
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
  if (lanes === null || (lanes.length === 0 && Object.keys(models).length === 0)) return null;
  const writer = 'writer' in value ? writerOf(value.writer) : null;
  return writer === null ? { lanes, models } : { lanes, models, writer };
}

function writerOf(value: unknown): MeaningWriter | null {
  if (typeof value !== 'object' || value === null) return null;
  const { pid, startTime }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  return { pid, startTime: typeof startTime === 'number' ? startTime : null };
}

/** null: none, or none that can be read. */
export function readMeaning(path: string): LaneMeaning | null {
  const read = readSmallFile(path);
  return read.kind === 'read' ? parseMeaning(read.text) : null;
}

/** Each once: a turn that took one twice would wait for itself. */
function laneNames(value: unknown): readonly string[] | null {
  if (!Array.isArray(value)) return null;
  const names = value.filter((name): name is string => typeof name === 'string' && NAME.test(name));
  const once = [...new Set(names)];
  return names.length === value.length && once.length <= MOST_LANES ? once : null;
}

export function meaningText(meaning: LaneMeaning): string {
  return `${JSON.stringify({ schema: MEANS_SCHEMA, ...meaning })}\n`;
}

export interface LanesMeant {
  /** In the order all must take them in. */
  readonly lanes: readonly LaneFiles[];
  /** A sentence where the file can't be what it should be and the port is its own lane; told once. */
  readonly garbage: string | null;
}

export function lanesMeant(lane: LaneFiles, model: string | null): LanesMeant {
  const read = readSmallFile(lane.means);
  if (read.kind === 'absent') return { lanes: [lane], garbage: null };
  const meaning = read.kind === 'read' ? parseMeaning(read.text) : null;
  if (meaning === null) {
    const why = read.kind === 'odd' ? read.why : 'names no lanes as it should';
    return {
      lanes: [lane],
      garbage: `${lane.means} ${why}, so this port is a lane of its own; remove it, or let the runtime write it again.`,
    };
  }
  if (meaning.writer !== undefined && isGone(meaning.writer)) return { lanes: [lane], garbage: null };
  const names = (model === null ? null : lanesOfModel(meaning.models, model)) ?? meaning.lanes;
  return { lanes: names.map((name) => laneFiles(lane.root, name)), garbage: null };
}

/** Its own name counts before its backend's. */
function lanesOfModel(models: LaneMeaning['models'], model: string): readonly string[] | null {
  if (Object.hasOwn(models, model)) return models[model] ?? null;
  const backends = Object.keys(models).filter(
    (name) => name.endsWith('/*') && model.startsWith(name.slice(0, -1)),
  );
  const nearest = backends.sort((one, other) => other.length - one.length)[0];
  return nearest === undefined ? null : (models[nearest] ?? null);
}
