/** CUDA's binaries as one archive, to be unpacked over an installed app's packages. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cudaPackages, installed } from './engine-packages.ts';
import type { Target } from './native.ts';

/**
 * Writes `<outDir>/vram-landlord-cuda-<version>-<platform>-<arch>.tar.gz` and resolves with its path.
 * Throws where there is no CUDA for the target, or its packages are not installed.
 */
export async function packCudaAddon(
  root: string,
  outDir: string,
  target: Target,
  version: string,
): Promise<string> {
  const names = cudaPackages(target);
  if (names.length === 0) throw new Error(`There is no CUDA for ${target.platform} ${target.arch}.`);
  for (const name of names) installed(root, name, target);
  mkdirSync(outDir, { recursive: true });
  const file = join(outDir, `vram-landlord-cuda-${version}-${target.platform}-${target.arch}.tar.gz`);
  const modules = join(root, 'node_modules');
  await promisify(execFile)('tar', ['-czf', file, '--exclude=*.md', '-C', modules, ...names]);
  return file;
}
