/** What a package holds, by list and size. */
import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface PackedFile {
  /** Relative, with forward slashes. */
  readonly path: string;
  readonly bytes: number;
}

/** All files below a folder, by path. */
export function listFolder(folder: string): readonly PackedFile[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return { path: relative(folder, file).replaceAll('\\', '/'), bytes: lstatSync(file).size };
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

const PARTS: readonly (readonly [string, (path: string) => boolean])[] = [
  ['Node for the command line and children', (path) => path.startsWith('resources/node/')],
  ['app.asar (main process, preload)', (path) => path === 'resources/app.asar'],
  ['the embedded engine, CPU and Vulkan', (path) => path.includes('/@node-llama-cpp/')],
  ['its JavaScript and what that needs', isEngineCode],
  ['koffi’s binary', (path) => path.endsWith('.node')],
  ['code for Node, unpacked', (path) => path.startsWith('resources/app.asar.unpacked/out/node/')],
  ['the page', (path) => path.startsWith('resources/app.asar.unpacked/out/renderer/')],
  ['the rest of the app', (path) => path.startsWith('resources/')],
  ['Electron’s runtime', () => true],
];

function isEngineCode(path: string): boolean {
  return path.includes('/app.asar.unpacked/node_modules/') && !path.includes('koffi');
}

/** Bytes of each part; every file counts once. */
export function partSizes(files: readonly PackedFile[]): ReadonlyMap<string, number> {
  const sizes = new Map(PARTS.map(([name]) => [name, 0]));
  for (const { path, bytes } of files) {
    const part = PARTS.find(([, holds]) => holds(path));
    if (part !== undefined) sizes.set(part[0], (sizes.get(part[0]) ?? 0) + bytes);
  }
  return sizes;
}

/** Without Electron's own runtime. */
export function ownBytes(files: readonly PackedFile[]): number {
  return [...partSizes(files)].reduce(
    (sum, [name, bytes]) => sum + (name.startsWith('Electron') ? 0 : bytes),
    0,
  );
}

export function sizeReport(folder: string): string {
  const files = listFolder(folder);
  const lines = [...partSizes(files)].map(([name, bytes]) => `${megabytes(bytes)}  ${name}`);
  return [...lines, `${megabytes(ownBytes(files))}  in all, without Electron’s runtime`].join('\n');
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1).padStart(7)} MB`;
}
