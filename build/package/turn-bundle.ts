/**
 * `landlord turn` as one file, for a checkout: `out/turn/landlord-turn.cjs`. Agents run it for every turn,
 * and of what it takes from the sources most is loading: some fifty modules, and `import … from 'node:fs'`, which
 * makes Node load its promises and streams (5 ms; `node:util` 2 ms more), where `getBuiltinModule` gives
 * the same for nothing. (Measured, Node 24, CPU time: `node -e 0` 32 ms, from
 * the sources 99, so 52.)
 *
 * It is what the sources are, or nothing: it knows size and time of each source that is in it, and where
 * one differs, or the folder was moved, it runs the sources instead.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'vite';
import { type BundledSource, factsOf } from './bundled-source.ts';

const ENTRY = 'electron/cli/turn-alone.ts';
/** The only command whose module goes in; others are not run from here. */
const COMMAND = './run-turn.ts';
const NAME = 'landlord-turn.cjs';

/** Builds `outDir/landlord-turn.cjs` and, for the set-up, `outDir/sources.json`. */
export async function bundleTurn(root: string, outDir: string): Promise<string> {
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  const sources = new Set<string>();
  await build({
    configFile: false,
    root,
    logLevel: 'error',
    cacheDir: join(root, 'node_modules/.cache/vite'),
    ssr: { noExternal: true, target: 'node' },
    plugins: [asTheSources(sources), banner(root, outDir, sources)],
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      target: 'node24',
      minify: false,
      sourcemap: false,
      rolldownOptions: {
        input: { 'landlord-turn': join(root, ENTRY) },
        output: { format: 'cjs', entryFileNames: NAME, codeSplitting: false },
      },
    },
  });
  writeFileSync(join(outDir, 'sources.json'), `${JSON.stringify(factsOf(sources), null, 1)}\n`);
  return join(outDir, NAME);
}

/** Each module keeps its own place: what it finds beside itself is found as from the sources. */
function asTheSources(sources: Set<string>): Plugin {
  return {
    name: 'landlord-turn-as-the-sources',
    enforce: 'pre',
    resolveId(id, importer, { kind }) {
      if (kind !== 'dynamic-import' || importer === undefined || !id.startsWith('.') || id === COMMAND)
        return null;
      return { id: pathToFileURL(join(dirname(importer), id)).href, external: true };
    },
    transform(code, id) {
      if (!id.startsWith('/')) return null;
      sources.add(id);
      const here: Readonly<Record<string, string>> = {
        "createRequire(import.meta.url)('koffi')": "require('koffi')",
        'import.meta.url': JSON.stringify(pathToFileURL(id).href),
        'import.meta.filename': JSON.stringify(id),
        'import.meta.dirname': JSON.stringify(dirname(id)),
      };
      const inPackage: Readonly<Record<string, string>> = {
        '(0, import_node_module.createRequire)(__filename)':
          "process.getBuiltinModule('node:module').createRequire(__filename)",
        // Its binary is named by a path beside it.
        'require(BINARIES': `process.getBuiltinModule('node:module').createRequire(${JSON.stringify(id)})(BINARIES`,
        __filename: JSON.stringify(id),
        __dirname: JSON.stringify(dirname(id)),
      };
      const replaced = Object.entries(id.includes('/node_modules/') ? inPackage : here).reduce(
        (text, [from, to]) => text.replaceAll(from, () => to),
        code,
      );
      return replaced === code ? null : { code: replaced };
    },
  };
}

/** What runs before anything else. A return outside of functions is allowed in a CommonJS file. */
function banner(root: string, outDir: string, sources: ReadonlySet<string>): Plugin {
  return {
    name: 'landlord-turn-banner',
    generateBundle(_options, bundle) {
      const chunk = bundle[NAME];
      if (chunk?.type !== 'chunk') throw new Error(`${NAME} was not made.`);
      const body = chunk.code.replaceAll(
        /(?:__toESM\()?require\("(?:node:)?([a-z_/]+)"\)(?:, 1\)|\))?/g,
        (whole, name: string) => builtin(whole, name),
      );
      chunk.code = `${freshOnly(root, outDir, factsOf(sources))}\n${body}`;
    },
  };
}

function builtin(whole: string, name: string): string {
  const get = `process.getBuiltinModule("node:${name}")`;
  if (!whole.startsWith('__toESM(')) return whole.replace(/require\("[^"]+"\)/, get);
  // An object that has it as its default too, without a look at each of its members: some load more.
  return `Object.create(${get}, { default: { value: ${get} } })`;
}

function freshOnly(root: string, outDir: string, facts: readonly BundledSource[]): string {
  const rows = facts.map(({ file, sizeBytes, mtimeMs }) => [file, sizeBytes, mtimeMs]);
  const cli = relative(outDir, join(root, 'electron/cli.ts'));
  return [
    `const landlordSources = ${JSON.stringify(rows)};`,
    "const { statSync: landlordStat } = process.getBuiltinModule('node:fs');",
    `if (__filename !== ${JSON.stringify(join(outDir, NAME))} || landlordSources.some(([file, size, mtimeMs]) => {`,
    '  const found = landlordStat(file, { throwIfNoEntry: false });',
    '  return found === undefined || found.size !== size || found.mtimeMs !== mtimeMs;',
    '})) {',
    // By where this file lies now: in a folder that was moved or copied, its own sources run.
    `  const cli = process.getBuiltinModule('node:path').join(__dirname, ${JSON.stringify(cli)});`,
    "  import(process.getBuiltinModule('node:url').pathToFileURL(cli).href);",
    '  return;',
    '}',
  ].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, '../..');
  process.stdout.write(`${await bundleTurn(root, join(root, 'out/turn'))}\n`);
}
