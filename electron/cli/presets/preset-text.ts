import { formatBytes } from '../../../shared/format.ts';
import type { Choice } from './choose.ts';
import type { FoundModel, LeftOut } from './find-models.ts';

export interface PresetModel {
  readonly model: FoundModel;
  readonly choice: Choice;
}

/** The first line of a file that may be written anew. */
export const MARK = '; Made by `landlord presets`.';

/**
 * A preset file of llama.cpp's router (docs/preset.md and tools/server/README, "Model presets"): a section
 * a model, keys as llama-server's long flags. Paths are absolute: a relative one means the server's folder.
 */
export function presetText(input: {
  readonly folder: string;
  readonly budgetBytes: number;
  /** Where the budget comes from. */
  readonly how: string;
  readonly models: readonly PresetModel[];
  readonly leftOut: readonly LeftOut[];
  /** Of each model. */
  readonly slots: number;
  /** Where what a model has read waits while it is unloaded; left out: nowhere. */
  readonly slotFolder?: string;
}): string {
  const head = [
    `${MARK} Run it again and it is written anew; what you add belongs into another file.`,
    `; Each model of ${oneLine(input.folder)} alone in ${formatBytes(input.budgetBytes)} (${oneLine(input.how)}).`,
    'version = 1',
    '',
    '; For all of them: counters, so that who works is told without a question, and a short wait at an unload.',
    '[*]',
    'metrics = true',
    'stop-timeout = 5',
    ...(input.slotFolder === undefined ? [] : kept(input.slotFolder)),
    ...(input.slots === 1 ? [] : SHARED),
  ];
  const sections = input.models.flatMap(({ model, choice }) => [
    '',
    `; ${formatBytes(choice.footprint.totalBytes)}. ${oneLine(choice.why.join(' '))}`,
    `[${model.name}]`,
    `model = ${model.path}`,
    ...(model.projectorPath === null ? [] : [`mmproj = ${model.projectorPath}`]),
    ...choice.keys.map(([key, value]) => `${key} = ${value}`),
  ]);
  const out = input.leftOut.map(({ path, why }) => `; left out: ${oneLine(path)}: ${oneLine(why)}`);
  return [...head, ...sections, ...(out.length === 0 ? [] : ['', ...out]), ''].join('\n');
}

/** Why a path can't stand in the file; null: it can. The router reads a value to its line's end, or to `;` or `#` (seen on build 11669). */
export function objectionToPath(path: string): string | null {
  if (/[;#]/.test(path))
    return 'Its path holds ; or #, where llama.cpp ends a value in such a file: rename it.';
  return /[\r\n]/.test(path) || path.trim() !== path
    ? 'Its path can not stand in such a file: rename it.'
    : null;
}

/** Several conversations at once: the prompt cache they share, 8 GiB of host memory, has put one into another's slot (llama.cpp issue 27148). */
const SHARED = ['; Conversations side by side share no prompt cache.', 'cache-ram = 0'];

/** A server that finds no such folder does not start, so that a path that can't stand in the file is left out. */
function kept(folder: string): readonly string[] {
  if (objectionToPath(folder) !== null) return [];
  return ['; What a model has read is kept here while it is unloaded.', `slot-save-path = ${folder}`];
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}
