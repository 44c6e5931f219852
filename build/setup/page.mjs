/** Builds the page when it is missing or older than its sources. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { lastLines, runProgram, SetupError } from './steps.mjs';

const SOURCES = ['renderer', 'shared', 'build/vite.config.ts', 'package-lock.json'];

/**
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensurePage(root, steps) {
  const stampFile = join(root, 'out/renderer.stamp');
  const stamp = hashSources(root, SOURCES);
  const built = existsSync(join(root, 'out/renderer/index.html'));
  if (built && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  await steps.run('Building the page', async () => {
    const vite = join(root, 'node_modules/vite/bin/vite.js');
    const result = await runProgram(
      join(root, 'node_modules/.bin/node'),
      [vite, 'build', '--config', 'build/vite.config.ts', '--logLevel', 'warn'],
      { cwd: root, env: { ...process.env, NO_COLOR: '1' } },
    );
    if (result.code !== 0) {
      throw new SetupError(
        `the page could not be built:\n\n${lastLines(result.output, 15)}\n\nRun \`npm run build:renderer\` to see all of it.`,
      );
    }
  });
  mkdirSync(join(root, 'out'), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/**
 * One hash over names and contents of files and folders, whatever order the disk lists them in.
 *
 * @param {string} root
 * @param {readonly string[]} sources relative to root
 */
export function hashSources(root, sources) {
  const hash = createHash('sha256');
  for (const file of sources.flatMap((source) => listFiles(join(root, source))).sort()) {
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

/**
 * @param {string} path
 * @returns {string[]}
 */
function listFiles(path) {
  if (!existsSync(path)) return [];
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => listFiles(join(path, entry.name)));
  } catch (error) {
    // Not a folder: the file itself.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return [path];
    throw error;
  }
}
