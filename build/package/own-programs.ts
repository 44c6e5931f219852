/**
 * Own programs that the code names by `new URL('./x-child.ts', import.meta.url)`: children that Node is
 * to run, and worker threads. In a bundle each becomes a file of its own, under its own name, and the
 * name is written anew so that it is found from there. New ones need nothing done here.
 *
 *   node/   every entry and chunk in one folder: `./x-child.js`
 *   main/   the same programs, seen from Electron's: `../node/x-child.js`. Node reads no archive, so they
 *           lie unpacked beside it: `app.asar` becomes `app.asar.unpacked`, and nothing where there is none
 */
import { basename, dirname, resolve } from 'node:path';
import type { Plugin } from 'vite';

const NAMED = /new URL\(\s*(['"])([^'"]+)\.ts\1\s*,\s*import\.meta\.url\s*,?\s*\)/g;

/** The programs a source names, as written, without `.ts`. */
export function namedPrograms(source: string): readonly string[] {
  return [...source.matchAll(NAMED)].map((match) => match[2] ?? '');
}

/** The source with its names as `side` finds them. */
export function renamePrograms(source: string, side: 'node' | 'main'): string {
  return source.replace(NAMED, (_all, _quote, specifier: string) =>
    side === 'node'
      ? `new URL('./${basename(specifier)}.js', import.meta.url)`
      : `new URL('../node/${basename(specifier)}.js', import.meta.url.replace('/app.asar/', '/app.asar.unpacked/'))`,
  );
}

/** On the `node` side each named program becomes an entry; the `main` side names those. */
export function ownPrograms(side: 'node' | 'main'): Plugin {
  const files = new Map<string, string>();
  return {
    name: 'own-programs',
    // Before the types are stripped: only the source has the names as they were written.
    enforce: 'pre',
    transform(source, id) {
      if (!id.endsWith('.ts') || id.includes('/node_modules/')) return null;
      const named = namedPrograms(source);
      if (named.length === 0) return null;
      for (const specifier of side === 'node' ? named : []) {
        const file = resolve(dirname(id), `${specifier}.ts`);
        const fileName = `${basename(specifier)}.js`;
        const other = files.get(fileName) ?? file;
        if (other !== file) this.error(`${file} and ${other} would both be ${fileName}: rename one of them.`);
        files.set(fileName, file);
        this.emitFile({ type: 'chunk', id: file, fileName });
      }
      return { code: renamePrograms(source, side), map: null };
    },
  };
}
