import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packCudaAddon } from '../../build/package/cuda-addon.ts';
import { cudaPackages } from '../../build/package/engine-packages.ts';
import { licenceText, packageFolder } from '../../build/package/licences.ts';
import { namedPrograms, renamePrograms } from '../../build/package/own-programs.ts';
import { ownBytes, partSizes } from '../../build/package/sizes.ts';
import { tempFolder } from '../support/gate.ts';
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

describe('package: the CUDA add-on', () => {
  const linux = { platform: 'linux', arch: 'x64' } as const;

  it('is an archive of CUDA’s packages, to be unpacked over those of the app', async () => {
    using folder = tempFolder();
    for (const name of cudaPackages(linux)) {
      const bins = join(folder.path, 'node_modules', name, 'bins');
      mkdirSync(bins, { recursive: true });
      writeFileSync(join(bins, 'llama-addon.node'), name);
      writeFileSync(join(bins, '..', 'README.md'), 'a document');
    }
    const file = await packCudaAddon(folder.path, join(folder.path, 'out'), linux, '1.2.3');
    expect(file).toBe(join(folder.path, 'out/vram-landlord-cuda-1.2.3-linux-x64.tar.gz'));
    const listed = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' });
    expect(listed).toContain('@node-llama-cpp/linux-x64-cuda/bins/llama-addon.node\n');
    expect(listed).toContain('@node-llama-cpp/linux-x64-cuda-ext/bins/llama-addon.node\n');
    expect(listed).not.toContain('README');
  });

  it('says what is missing where it can’t be made', async () => {
    using folder = tempFolder();
    await expect(packCudaAddon(folder.path, folder.path, linux, '1')).rejects.toThrow('is not installed');
    const mac = { platform: 'darwin', arch: 'arm64' } as const;
    await expect(packCudaAddon(folder.path, folder.path, mac, '1')).rejects.toThrow(
      'no CUDA for darwin arm64',
    );
  });
});
