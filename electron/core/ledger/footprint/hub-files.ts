import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { flagValue } from '../../process/procfs-text.ts';
import { splitParts } from '../weight-files.ts';

/** A model that is named by its repository at Hugging Face, as `-hf owner/name:Q4_K_M` does. */
export interface HubModel {
  readonly repository: string;
  /** Empty: llama.cpp's own choice. */
  readonly tag: string;
  /** Of the repository; null: by its tag. */
  readonly file: string | null;
  readonly wantsProjector: boolean;
}

/** Where llama.cpp has put it. */
export interface HubFiles {
  readonly modelPath: string;
  readonly projectorPath: string | null;
}

export interface HubFolders {
  /** Hugging Face's own layout, since March 2026 (common/hf-cache.cpp). */
  readonly hubs: readonly string[];
  /** Before it all files lay in one folder, as `owner_name_file.gguf` (common/common.cpp). */
  readonly flat: readonly string[];
}

const NO_PROJECTOR = ['--no-mmproj', '--no-mmproj-auto'];

/** null: the command line names a file, or no repository. */
export function hubModelIn(args: readonly string[]): HubModel | null {
  const found = repositoryIn(args, ['--hf-repo', '-hf', '-hfr'], ['--model', '-m']);
  if (found === null) return null;
  const wantsProjector =
    flagValue(args, '--mmproj', '-mm') === null && !NO_PROJECTOR.some((flag) => args.includes(flag));
  return { ...found, file: flagValue(args, '--hf-file', '-hff'), wantsProjector };
}

/** The draft beside a model, named in the same way. */
export function hubDraftIn(args: readonly string[]): HubModel | null {
  const flags = ['--spec-draft-hf', '-hfd', '-hfrd', '--hf-repo-draft'];
  const found = repositoryIn(args, flags, ['--spec-draft-model', '--model-draft', '-md']);
  return found === null ? null : { ...found, file: null, wantsProjector: false };
}

function repositoryIn(
  args: readonly string[],
  flags: readonly string[],
  fileFlags: readonly string[],
): Pick<HubModel, 'repository' | 'tag'> | null {
  const found = /^([\w.-]+\/[\w.-]+)(?::([\w.-]+))?$/.exec(flagValue(args, ...flags) ?? '');
  if (found?.[1] === undefined || flagValue(args, ...fileFlags) !== null) return null;
  return { repository: found[1], tag: found[2] === undefined || found[2] === 'latest' ? '' : found[2] };
}

/** Flags for the files that a command line names by their repositories; none for those that are not there. */
export async function hubFileArgs(args: readonly string[], folders: HubFolders): Promise<readonly string[]> {
  const model = hubModelIn(args);
  const draft = hubDraftIn(args);
  const files = model === null ? null : await findHubFiles(model, folders);
  const draftFiles = draft === null ? null : await findHubFiles(draft, folders);
  return [
    ...(files === null ? [] : hubArgs(files)),
    ...(draftFiles === null ? [] : ['--spec-draft-model', draftFiles.modelPath]),
  ];
}

function hubArgs({ modelPath, projectorPath }: HubFiles): readonly string[] {
  return ['--model', modelPath, ...(projectorPath === null ? [] : ['--mmproj', projectorPath])];
}

/** llama.cpp takes the first of them; a server of this user may have been started with another environment. */
export function hubFolders(env: Readonly<Record<string, string | undefined>>, home: string): HubFolders {
  const under = (base: string | undefined, ...rest: string[]): string[] =>
    base === undefined || base === '' ? [] : [join(base, ...rest)];
  return {
    hubs: [
      ...under(env.LLAMA_CACHE),
      ...under(env.HF_HUB_CACHE),
      ...under(env.HUGGINGFACE_HUB_CACHE),
      ...under(env.HF_HOME, 'hub'),
      ...under(env.XDG_CACHE_HOME, 'huggingface', 'hub'),
      join(home, '.cache', 'huggingface', 'hub'),
    ],
    flat: [
      ...under(env.LLAMA_CACHE),
      ...under(env.XDG_CACHE_HOME, 'llama.cpp'),
      join(home, '.cache', 'llama.cpp'),
    ],
  };
}

/** null: it is in none of these folders, or only a part of it. Errors of the disk are the same. */
export async function findHubFiles(model: HubModel, folders: HubFolders): Promise<HubFiles | null> {
  for (const hub of folders.hubs) {
    const repository = join(hub, `models--${model.repository.replace('/', '--')}`);
    const commit = await commitOf(join(repository, 'refs'));
    if (commit === null) continue;
    const base = join(repository, 'snapshots', commit);
    const found = chosen(model, await filesIn(base, true));
    if (found !== null) return placed(found, base);
  }
  const prefix = `${model.repository.replace('/', '_')}_`;
  for (const base of folders.flat) {
    const files = (await filesIn(base, false)).filter((file) => file.startsWith(prefix));
    const wanted = model.file === null ? null : `${prefix}${model.file.replaceAll('/', '_')}`;
    const found = chosen({ ...model, file: wanted }, files);
    if (found !== null) return placed(found, base);
  }
  return null;
}

interface Chosen {
  readonly model: string;
  readonly projector: string | null;
}

function placed(files: Chosen, base: string): HubFiles {
  return {
    modelPath: join(base, files.model),
    projectorPath: files.projector === null ? null : join(base, files.projector),
  };
}

/** Weights beside a model that are none by themselves (common/download.cpp, `gguf_filename_is_model`). */
const BESIDE = /mmproj|imatrix|(?:mtp|eagle3|dflash|dspark)-/i;

/** As llama.cpp chooses (`find_best_model`): by the tag, else Q4_K_M, Q8_0, or the first there is. */
function chosen(model: HubModel, files: readonly string[]): Chosen | null {
  const there = new Set(files);
  const models = files
    .filter((file) => !BESIDE.test(file.split('/').at(-1) ?? ''))
    .filter((file) => splitParts(file)[0] === file && splitParts(file).every((part) => there.has(part)));
  const plain = (text: string): string => text.toLowerCase().replaceAll('.', '-');
  const tagged = (tag: string): string | undefined =>
    models.find((file) => plain(file).includes(`${plain(tag)}-`));
  const byTag = model.tag === '' ? (tagged('Q4_K_M') ?? tagged('Q8_0') ?? models[0]) : tagged(model.tag);
  const found = model.file === null ? byTag : models.find((file) => file === model.file);
  if (found === undefined) return null;
  return { model: found, projector: model.wantsProjector ? projectorFor(found, files) : null };
}

/** The one whose numbers are nearest to the model's (`find_best_sibling`). */
function projectorFor(model: string, files: readonly string[]): string | null {
  const wanted = bitsOf(model);
  const near = files
    .filter((file) => /mmproj/i.test(file) && file.endsWith('.gguf'))
    .sort((one, other) => Math.abs(bitsOf(one) - wanted) - Math.abs(bitsOf(other) - wanted));
  return near[0] ?? null;
}

function bitsOf(file: string): number {
  const found = [...file.matchAll(/(?:^|[-_.])(?:I?Q|B?F|(?:MX|NV)FP)(\d+)/gi)].at(-1);
  return Number(found?.[1] ?? 16);
}

async function filesIn(folder: string, recursive: boolean): Promise<readonly string[]> {
  try {
    return (await readdir(folder, { recursive })).filter((file) => file.endsWith('.gguf')).sort();
  } catch {
    return [];
  }
}

/** `refs/main`, else what another branch stands at. */
async function commitOf(refs: string): Promise<string | null> {
  let names: readonly string[] = [];
  try {
    names = await readdir(refs);
  } catch {
    return null;
  }
  for (const name of [...names].sort((one, other) => Number(other === 'main') - Number(one === 'main'))) {
    const text = await readFile(join(refs, name), 'utf8').catch(() => '');
    const commit = text.trim();
    if (/^[0-9a-f]{40}$/i.test(commit)) return commit;
  }
  return null;
}
