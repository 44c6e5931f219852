import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { licenceText, packageFolder } from '../../build/package/licences.ts';
import { namedPrograms, renamePrograms } from '../../build/package/own-programs.ts';
import { ownBytes, partSizes } from '../../build/package/sizes.ts';
import { layerFiles } from '../support/source-files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('package: own programs', () => {
  const source = `const a = fileURLToPath(new URL('./x-child.ts', import.meta.url));
const b = new URL(
  "../y/z-worker.ts",
  import.meta.url,
);
const page = new URL('../../out/renderer', import.meta.url);`;

  it('finds each program a source names, however it is written, and nothing else', () => {
    expect(namedPrograms(source)).toEqual(['./x-child', '../y/z-worker']);
  });

  it('names them anew beside the bundle, and outside of the archive for Electron', () => {
    const node = renamePrograms(source, 'node');
    expect(node).toContain("new URL('./x-child.js', import.meta.url)");
    expect(node).toContain("new URL('./z-worker.js', import.meta.url)");
    expect(node).toContain("new URL('../../out/renderer', import.meta.url)");
    const main = renamePrograms(source, 'main');
    expect(main).toContain(
      "new URL('../node/x-child.js', import.meta.url.replace('/app.asar/', '/app.asar.unpacked/'))",
    );
  });

  it('covers every program of the core: none is named in another way', () => {
    for (const file of layerFiles(join(root, 'electron'))) {
      const text = readFileSync(file, 'utf8');
      // A path of a source that is put together by hand is not found in a bundle.
      expect(text, file).not.toMatch(/import\.meta\.dirname,[^)]*\.ts'/);
      // The pathname of a URL is not a path: it keeps %20.
      expect(text, file).not.toMatch(/import\.meta\.url\)\.pathname/);
    }
  });
});

describe('package: licences', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'landlord-licences-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('knows the package a module is of, with its scope and the innermost of nested ones', () => {
    expect(packageFolder('/p/node_modules/a/lib/x.js')).toBe('/p/node_modules/a');
    expect(packageFolder('/p/node_modules/@s/a/x.js')).toBe('/p/node_modules/@s/a');
    expect(packageFolder('/p/node_modules/a/node_modules/b/x.js')).toBe('/p/node_modules/a/node_modules/b');
    expect(packageFolder('/p/electron/main.ts')).toBe(null);
  });

  it('says name, version, licence and text of each', () => {
    writeFileSync(join(folder, 'package.json'), '{"name":"a","version":"1.2.3","license":"MIT"}');
    expect(licenceText([folder])).toBe('a 1.2.3 (MIT)\n');
    writeFileSync(join(folder, 'LICENSE.md'), 'Take it.\n');
    expect(licenceText([folder, folder])).toBe('a 1.2.3 (MIT)\n\nTake it.\n');
  });
});

describe('package: sizes', () => {
  it('counts every file once, and Electron’s own apart', () => {
    const files = [
      { path: 'vram-landlord', bytes: 1000 },
      { path: 'resources/node/bin/node', bytes: 100 },
      { path: 'resources/app.asar', bytes: 20 },
      { path: 'resources/app.asar.unpacked/node_modules/@koromix/k/koffi.node', bytes: 3 },
      { path: 'resources/app.asar.unpacked/package.json', bytes: 1 },
    ];
    expect([...partSizes(files).values()].reduce((sum, bytes) => sum + bytes, 0)).toBe(1124);
    expect(ownBytes(files)).toBe(124);
  });
});
