/**
 * node-llama-cpp and what it needs, for one target: its JavaScript as it comes (it finds its binaries by
 * where it lies, so it is not bundled), and its binaries for the CPU and for Vulkan, which serves AMD,
 * Intel and NVIDIA cards alike. CUDA's, three times as large as all the rest, are an add-on.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { Target } from './native.ts';

export const ENGINE = 'node-llama-cpp';

/** The packages of binaries that go into the app, the plainest first. */
export function enginePackages({ platform, arch }: Target): readonly string[] {
  const names =
    platform === 'linux'
      ? arch === 'x64'
        ? ['linux-x64', 'linux-x64-vulkan']
        : ['linux-arm64']
      : platform === 'darwin'
        ? [arch === 'arm64' ? 'mac-arm64-metal' : 'mac-x64']
        : arch === 'x64'
          ? ['win-x64', 'win-x64-vulkan']
          : ['win-arm64'];
  return names.map((name) => `@node-llama-cpp/${name}`);
}

/** CUDA's, which are packed by themselves: for cards of today, and the extension for older ones. */
export function cudaPackages({ platform, arch }: Target): readonly string[] {
  if (arch !== 'x64' || platform === 'darwin') return [];
  const os = platform === 'linux' ? 'linux' : 'win';
  return [`@node-llama-cpp/${os}-x64-cuda`, `@node-llama-cpp/${os}-x64-cuda-ext`];
}

/** What is run: JavaScript and its data. Types, source maps, documents and llama.cpp's sources are not. */
const WANTED = /\.(?:js|cjs|mjs|json|gbnf)$/;
const UNWANTED_FOLDERS = new Set([
  'node_modules',
  'addon',
  'profiles',
  'toolchains',
  'xpack',
  'cmake',
  'patches',
  'templates',
  'test',
  'tests',
  'docs',
  'doc',
  'example',
  'examples',
  'benchmark',
  'benchmarks',
  '.github',
]);

/** All that is packed of it, as folders. Throws when a package of the target is not installed. */
export function engineFolders(root: string, target: Target): readonly string[] {
  return [
    ...closure(join(root, 'node_modules', ENGINE)),
    ...enginePackages(target).map((name) => installed(root, name, target)),
  ];
}

/**
 * Copies it all into `modulesDir`, each package where it lay in the project's node_modules. It goes past
 * electron-builder, whose list of packages knows each once and no links.
 */
export function copyEngine(root: string, modulesDir: string, target: Target): void {
  const place = (folder: string): string => join(modulesDir, relative(join(root, 'node_modules'), folder));
  for (const folder of closure(join(root, 'node_modules', ENGINE))) copyCode(folder, place(folder));
  const binaries = enginePackages(target).map((name) => installed(root, name, target));
  for (const folder of binaries) cpSync(folder, place(folder), { recursive: true, filter: isNoDocument });
  const [plain, ...others] = binaries.map(place);
  if (target.platform === 'linux' && plain !== undefined) for (const other of others) linkSame(plain, other);
}

export function installed(root: string, name: string, target: Target): string {
  const folder = join(root, 'node_modules', name);
  if (existsSync(folder)) return folder;
  throw new Error(
    `${name} is not installed, so nothing can be packed with it: npm install --os ${target.platform} --cpu ${target.arch}`,
  );
}

/** A package and all it depends on, as Node would find them from where they lie. */
function closure(folder: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(folder)) return found;
  found.add(folder);
  const facts: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const needs: unknown =
    typeof facts === 'object' && facts !== null ? Reflect.get(facts, 'dependencies') : null;
  for (const name of Object.keys(typeof needs === 'object' && needs !== null ? needs : {})) {
    const needed = findFrom(folder, name);
    if (needed === null) throw new Error(`${name}, which ${folder} needs, is not installed: npm ci`);
    closure(needed, found);
  }
  return found;
}

function findFrom(folder: string, name: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const candidate = join(at, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (dirname(at) === at) return null;
  }
}

function copyCode(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const path = join(from, entry.name);
    if (entry.isDirectory() && !UNWANTED_FOLDERS.has(entry.name)) copyCode(path, join(to, entry.name));
    else if (entry.isFile() && WANTED.test(entry.name)) {
      mkdirSync(to, { recursive: true });
      // The map that its last line names is not packed.
      const text = readFileSync(path, 'utf8').replace(/\/\/[#@] sourceMappingURL=\S*\s*$/, '');
      writeFileSync(join(to, entry.name), text);
    }
  }
}

function isNoDocument(path: string): boolean {
  return !path.endsWith('.md');
}

/** Files of `other` that `plain` has too, byte for byte, become links to it: the CPU's variants come with each. */
function linkSame(plain: string, other: string): void {
  const here = new Map(filesIn(join(plain, 'bins')).map((path) => [basename(path), path]));
  for (const path of filesIn(join(other, 'bins'))) {
    const same = here.get(basename(path));
    if (same === undefined || statSync(same).size !== statSync(path).size) continue;
    if (!readFileSync(same).equals(readFileSync(path))) continue;
    rmSync(path);
    symlinkSync(relative(dirname(path), same), path);
  }
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => lstatSync(path).isFile());
}
