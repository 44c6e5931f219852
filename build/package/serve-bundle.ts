/**
 * `landlord serve` of a checkout as a package has it: plain JavaScript in a few files, `out/node`. From the
 * sources a runtime keeps 330 modules with all their comments: 9 MB more resident, and 135 ms of CPU more
 * until it listens (measured, Node 24).
 *
 * `out/node/start.cjs` runs it, or the sources where one of them is not as it was when this was built.
 */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, type Plugin } from 'vite';
import { nodeSide } from './bundle.ts';
import { type BundledSource, factsOf } from './bundled-source.ts';

const NAME = 'start.cjs';
/** What an earlier build left is kept for as long as a runtime that was started from it may load of it. */
const KEPT_MS = 30 * 86_400_000;

/** Builds into `outDir`, which lies two folders below `root` as the sources do. */
export async function bundleServe(root: string, outDir: string): Promise<string> {
  // Its packages are in it as well.
  const sources = new Set([join(root, 'package-lock.json')]);
  const config = nodeSide(root, 'node', 'electron/cli.ts', outDir);
  await build({ ...config, plugins: [...(config.plugins ?? []), collect(sources)] });
  for (const name of readdirSync(outDir)) {
    const file = join(outDir, name);
    if (Date.now() - statSync(file).mtimeMs > KEPT_MS) rmSync(file, { recursive: true });
  }
  const facts = factsOf(sources);
  writeFileSync(join(outDir, NAME), program(root, outDir, facts));
  writeFileSync(join(outDir, 'sources.json'), `${JSON.stringify(facts, null, 1)}\n`);
  return join(outDir, NAME);
}

function collect(sources: Set<string>): Plugin {
  return {
    name: 'landlord-serve-sources',
    transform(_code, id) {
      const file = id.split('?', 1)[0] ?? id;
      if (file.startsWith('/') && !file.includes('/node_modules/')) sources.add(file);
      return null;
    },
  };
}

function program(root: string, outDir: string, facts: readonly BundledSource[]): string {
  const rows = facts.map(({ file, sizeBytes, mtimeMs }) => [file, sizeBytes, mtimeMs]);
  return [
    `const sources = ${JSON.stringify(rows)};`,
    "const { statSync } = process.getBuiltinModule('node:fs');",
    `const isFresh = __dirname === ${JSON.stringify(outDir)} && sources.every(([file, size, mtimeMs]) => {`,
    '  const found = statSync(file, { throwIfNoEntry: false });',
    '  return found !== undefined && found.size === size && found.mtimeMs === mtimeMs;',
    '});',
    // By where this file lies now: in a folder that was moved or copied, its own sources run.
    `const entry = isFresh ? 'cli.js' : ${JSON.stringify(relative(outDir, join(root, 'electron/cli.ts')))};`,
    "const path = process.getBuiltinModule('node:path').join(__dirname, entry);",
    "import(process.getBuiltinModule('node:url').pathToFileURL(path).href);",
    '',
  ].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, '../..');
  process.stdout.write(`${await bundleServe(root, join(root, 'out/node'))}\n`);
}
