import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLayers } from '../../build/check-layers.ts';
import { importsOf } from '../../build/imports.ts';
import { checkImports, layerOf, packageName } from '../../build/layers.ts';

function violations(file: string, source: string): readonly string[] {
  const found = importsOf(file, source);
  if (!found.ok) throw new Error(found.message);
  return checkImports(file, found.imports).map((violation) => violation.message);
}

describe('layers: each import the rule forbids is found', () => {
  const forbidden: readonly (readonly [rule: string, file: string, source: string])[] = [
    ['shared takes nothing of core', 'shared/a.ts', `import { x } from '../electron/core/x.ts';`],
    ['shared takes nothing of Node', 'shared/a.ts', `import fs from 'node:fs';`],
    ['shared takes nothing of Node, unprefixed', 'shared/a.ts', `import fs from 'fs/promises';`],
    ['shared takes nothing of Electron', 'shared/a.ts', `import type { App } from 'electron';`],
    ['shared takes no package of the page', 'shared/a.ts', `import { createRoot } from 'react-dom/client';`],
    ['renderer takes nothing of core', 'renderer/a.tsx', `import type { X } from '../electron/core/x.ts';`],
    [
      'renderer takes nothing of core, re-exported',
      'renderer/a.ts',
      `export * from '../electron/core/x.ts';`,
    ],
    [
      'renderer takes nothing of core, lazily',
      'renderer/a.ts',
      `const x = await import('../electron/core/x.ts');`,
    ],
    [
      'renderer takes nothing of core, in a type',
      'renderer/a.ts',
      `type X = import('../electron/core/x.ts').X;`,
    ],
    ['renderer takes nothing of Node', 'renderer/a.ts', `import { join } from 'path';`],
    ['renderer takes nothing of Electron', 'renderer/a.ts', `import { ipcRenderer } from 'electron';`],
    ['renderer takes no server package', 'renderer/a.ts', `import fastify from 'fastify';`],
    ['core takes nothing of the page', 'electron/core/a/b.ts', `import { x } from '../../../renderer/x.ts';`],
    ['core takes nothing of the shell', 'electron/core/a.ts', `import { x } from '../shell/x.ts';`],
    ['core takes nothing of Electron', 'electron/core/a.ts', `const { app } = require('electron');`],
    [
      'core takes nothing of Electron, by its parts',
      'electron/core/a.ts',
      `import { app } from 'electron/main';`,
    ],
    ['core takes nothing of the command line', 'electron/core/a.ts', `import { x } from '../cli/x.ts';`],
    ['core takes nothing of tests', 'electron/core/a.ts', `import { x } from '../../test/fakes/x.ts';`],
    [
      'core takes nothing of the page, as a worker',
      'electron/core/a.ts',
      `new URL('../../renderer/w.ts', import.meta.url)`,
    ],
    [
      'core takes no package of the page',
      'electron/core/a.ts',
      `import { createStore } from 'zustand/vanilla';`,
    ],
    ['core hides no import behind a computed name', 'electron/core/a.ts', `await import(name);`],
    [
      'core takes nothing of Electron, by require.resolve',
      'electron/core/a.ts',
      `require.resolve('electron');`,
    ],
    ['the command line takes nothing of the shell', 'electron/cli.ts', `import { x } from './shell/x.ts';`],
    ['the command line takes nothing of Electron', 'electron/cli/a.ts', `import { app } from 'electron';`],
    [
      'the shell takes nothing of the page',
      'electron/shell/a.ts',
      `import { x } from '../../renderer/x.ts';`,
    ],
    ['nothing takes main', 'electron/shell/a.ts', `import '../main.ts';`],
    ['preload takes nothing of the shell', 'electron/preload.ts', `import { x } from './shell/x.ts';`],
    ['preload takes nothing of Node', 'electron/preload.ts', `import { readFile } from 'node:fs/promises';`],
    ['build takes nothing of the shell', 'build/a.ts', `import { x } from '../electron/shell/x.ts';`],
    ['tests do not need the program of Electron', 'test/a.ts', `import { app } from 'electron';`],
    ['no absolute paths', 'electron/core/a.ts', `import x from '/etc/x.ts';`],
    ['no file outside the layers', 'electron/stray.ts', ``],
  ];
  it.each(forbidden)('%s', (_rule, file, source) => {
    expect(violations(file, source)).toHaveLength(1);
  });
});

describe('layers: what the rule allows passes', () => {
  const allowed: readonly (readonly [file: string, source: string])[] = [
    ['shared/a.ts', `import { ok } from './errors.ts'; import { z } from 'zod';`],
    [
      'renderer/a.tsx',
      `import { useState } from 'react'; import { x } from '../shared/x.ts'; import './a.css';`,
    ],
    ['renderer/store.ts', `import { createStore } from 'zustand/vanilla';`],
    [
      'electron/core/a/b.ts',
      `import fs from 'node:fs'; import koffi from 'koffi'; import '../../../shared/x.ts';`,
    ],
    [
      'electron/core/a.ts',
      `new Worker(new URL('./worker.ts', import.meta.url)); new URL('../../out/', import.meta.url)`,
    ],
    ['electron/cli.ts', `import { x } from './core/x.ts'; import { y } from './cli/y.ts';`],
    ['electron/shell/a.ts', `import { app } from 'electron'; import { x } from '../core/x.ts';`],
    ['electron/main.ts', `import { app } from 'electron'; import { x } from './shell/app.ts';`],
    [
      'electron/preload.ts',
      `import { contextBridge } from 'electron'; import type { X } from '../shared/x.ts';`,
    ],
    [
      'test/fakes/a.ts',
      `import type { App } from 'electron'; import { x } from '../../electron/shell/x.ts';`,
    ],
    ['build/a.ts', 'await import(name);'],
  ];
  it.each(allowed)('%s: %s', (file, source) => {
    expect(violations(file, source)).toEqual([]);
  });

  it('reads no imports out of comments, strings and regular expressions', () => {
    const source = `
      // import { app } from 'electron';
      /* require('electron') */
      const text = "import { app } from 'electron'";
      const other = \`import('electron')\`;
      const pattern = /import 'electron'/;
    `;
    expect(violations('shared/a.ts', source)).toEqual([]);
  });
});

describe('layers: over files', () => {
  let folder = '';
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('names the file and the line, and a file that does not parse', () => {
    folder = mkdtempSync(join(tmpdir(), 'landlord-layers-'));
    const files = {
      'shared/ok.ts': `export const a = 1;`,
      'renderer/view/bad.tsx': `import { a } from '../../shared/ok.ts';\n\nexport { b } from '../../electron/core/b.ts';`,
      'electron/core/broken.ts': `const = ;`,
    };
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(folder, dirname(name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const result = checkLayers(folder);
    expect(result.files).toBe(3);
    expect(result.violations.map(({ file, line }) => `${file}:${line}`)).toEqual([
      'electron/core/broken.ts:1',
      'renderer/view/bad.tsx:3',
    ]);
  });

  it('knows each layer by its folder, and a package by its name', () => {
    expect(layerOf('electron/cli/x.ts')).toBe('cli');
    expect(layerOf('electron/corelike/x.ts')).toBe('other');
    expect(packageName('@vitejs/plugin-react/x')).toBe('@vitejs/plugin-react');
    expect(packageName('react-dom/client')).toBe('react-dom');
  });
});
