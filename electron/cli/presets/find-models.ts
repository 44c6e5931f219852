import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fail, ok, type Result } from '../../../shared/errors.ts';

/** One model of a folder: its first file, and the projector that lies beside it. */
export interface FoundModel {
  /** The name its preset gets: the file's, without its ending. */
  readonly name: string;
  /** Absolute if the folder was given so. */
  readonly path: string;
  readonly projectorPath: string | null;
}

export interface LeftOut {
  readonly path: string;
  /** A sentence. */
  readonly why: string;
}

export interface FolderContents {
  readonly models: readonly FoundModel[];
  readonly leftOut: readonly LeftOut[];
}

/** Folders within folders, as downloads are laid down: maker, repository, file. */
const DEPTH = 4;
const SHARD = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;
/** As llama.cpp's own folders have it (tools/server/README, "--models-dir"), and as makers write it. */
const PROJECTOR = /(?:^|[-_.])mmproj(?:[-_.]|$)/i;

/** What llama.cpp downloads with a model (common/download.cpp, `gguf_filename_is_model`). */
const BESIDE = /^(?:mtp|eagle3|dflash|dspark)-|imatrix/i;

/** Every model under a folder, links followed, by name. Errors: `bad_input`: it can't be read. */
export async function findModels(folder: string): Promise<Result<FolderContents>> {
  const files: string[] = [];
  try {
    await walk(folder, DEPTH, files);
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unknown';
    const why =
      code === 'ENOENT' ? 'is not there' : code === 'ENOTDIR' ? 'is no folder' : `can't be read (${code})`;
    return fail('bad_input', `${folder} ${why}.`);
  }
  return ok(modelsAmong(files));
}

/** Pure: which of these files are models, with what belongs to them. */
export function modelsAmong(all: readonly string[]): FolderContents {
  const there = new Set(all);
  const files = all.filter((path) => !BESIDE.test(basename(path)));
  const leftOut: LeftOut[] = all
    .filter((path) => BESIDE.test(basename(path)))
    .map((path) => ({ path, why: 'It goes with another model, and is none by itself.' }));
  const models: FoundModel[] = [];
  const projectors = files.filter((file) => PROJECTOR.test(basename(file, '.gguf')));
  for (const path of [...files].sort()) {
    if (projectors.includes(path)) continue;
    const shard = SHARD.exec(basename(path));
    if (shard !== null && Number(shard[2]) !== 1) continue;
    const missing = missingShards(path, there);
    if (missing.length > 0) {
      leftOut.push({
        path,
        why: `${missing.length} of its parts ${missing.length === 1 ? 'is' : 'are'} missing.`,
      });
      continue;
    }
    const beside = projectors.filter((one) => folderOf(one) === folderOf(path));
    models.push({
      name: nameOf(shard?.[1] ?? basename(path, '.gguf')),
      path,
      // Several lie about in a folder of one repository: the most exact one serves, and it is small.
      projectorPath: isAlone(path, files, projectors) ? (exactest(beside) ?? null) : named(path, beside),
    });
  }
  return { models: withOwnNames(models), leftOut };
}

async function walk(folder: string, depth: number, files: string[]): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name.startsWith('.')) continue;
    if (entry.name.toLowerCase().endsWith('.gguf') && !entry.isDirectory()) files.push(path);
    // A folder within that can't be read leaves out its own models alone.
    else if (entry.isDirectory() && depth > 1) await walk(path, depth - 1, files).catch(() => undefined);
  }
}

function missingShards(path: string, there: ReadonlySet<string>): readonly string[] {
  const match = SHARD.exec(basename(path));
  if (match === null) return [];
  const total = Number(match[3]);
  const names = Array.from(
    { length: total },
    (_, index) => `${match[1]}-${String(index + 1).padStart(5, '0')}-of-${match[3]}.gguf`,
  );
  return names.map((name) => join(folderOf(path), name)).filter((file) => !there.has(file));
}

function folderOf(path: string): string {
  return path.slice(0, path.length - basename(path).length - 1);
}

/** Of one model's quantisations, or of it alone. */
function isAlone(path: string, files: readonly string[], projectors: readonly string[]): boolean {
  const stem = (file: string): string => basename(file).split(/[-_.](?:I?Q\d|F16|BF16|F32|UD)/i)[0] ?? '';
  return files
    .filter((file) => folderOf(file) === folderOf(path) && !projectors.includes(file))
    .every((file) => stem(file) === stem(path));
}

/** In a folder of several models only one that carries the model's own name is its own. */
function named(path: string, beside: readonly string[]): string | null {
  const bare = basename(path, '.gguf').toLowerCase();
  return (
    beside.find((one) => {
      const rest =
        basename(one, '.gguf')
          .toLowerCase()
          .replace(/[-_.]?mmproj[-_.]?/g, ' ')
          .trim()
          .split(' ')[0] ?? '';
      return rest.length > 3 && bare.startsWith(rest);
    }) ?? null
  );
}

function exactest(projectors: readonly string[]): string | undefined {
  const rank = (file: string): number =>
    ['bf16', 'f16', 'q8', 'f32'].findIndex((type) => file.toLowerCase().includes(type));
  return [...projectors].sort(
    (one, other) => ((rank(one) + 9) % 9) - ((rank(other) + 9) % 9) || (one < other ? -1 : 1),
  )[0];
}

/** A section's name stands between brackets, and a request's model may not begin or end with a space. */
function nameOf(text: string): string {
  return text.replaceAll(/[[\];#\r\n]/g, '_').trim();
}

/** The same file name in two folders: the folder's name tells them apart. */
function withOwnNames(models: readonly FoundModel[]): readonly FoundModel[] {
  const counts = new Map<string, number>();
  for (const { name } of models) counts.set(name, (counts.get(name) ?? 0) + 1);
  const taken = new Set<string>();
  return models.map((model) => {
    const isShared = (counts.get(model.name) ?? 0) > 1;
    const folder = basename(folderOf(model.path));
    const wanted = isShared ? nameOf(`${folder}-${model.name}`) : model.name;
    let name = wanted;
    for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
    taken.add(name);
    return { ...model, name };
  });
}
