import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The types a layer is compiled with are its wall: what it must not use does not exist there. */
describe('tsconfig walls', () => {
  let folder = '';
  beforeEach(() => {
    // Under node_modules, so that @types resolve as they do for the layer itself.
    mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
    folder = mkdtempSync(join(root, 'node_modules/.cache/walls-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function compile(layer: string, source: string): { readonly ok: boolean; readonly output: string } {
    writeFileSync(join(folder, 'probe.ts'), source);
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, layer, 'tsconfig.json'),
        compilerOptions: {
          rootDir: root,
          composite: false,
          incremental: false,
          emitDeclarationOnly: false,
          declaration: false,
          noEmit: true,
          tsBuildInfoFile: null,
          outDir: null,
        },
        include: ['probe.ts'],
        references: [],
      }),
    );
    const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      encoding: 'utf8',
    });
    return { ok: tsc.status === 0, output: tsc.stdout };
  }

  it.each([
    ['shared', 'the page', 'export const a = document.title;', 'document'],
    ['shared', 'Node', 'export const a = process.pid;', 'process'],
    [
      'shared',
      "Node's modules",
      `import { readFileSync } from 'node:fs'; export const a = readFileSync;`,
      'node:fs',
    ],
    ['shared', 'timers', 'export const a = setTimeout(() => {}, 1);', 'setTimeout'],
    ['renderer', 'Node', 'export const a = process.pid;', 'process'],
    ['renderer', "Node's modules", `import { join } from 'node:path'; export const a = join;`, 'node:path'],
    ['electron/core', 'the page', 'export const a = document.title;', 'document'],
    ['electron', 'the page', 'export const a = window.innerWidth;', 'window'],
    ['build', 'the page', 'export const a = document.title;', 'document'],
  ])('%s does not compile when it uses %s', (layer, _what, source, name) => {
    const result = compile(layer, source);
    expect(result.ok).toBe(false);
    expect(result.output).toContain(name);
  });

  it.each([
    ['shared', 'export const a: number = Math.max(1, 2);'],
    ['renderer', 'export const a = document.title;'],
    ['electron/core', `import { join } from 'node:path'; export const a = join('a', String(process.pid));`],
    ['electron', 'export const a = process.pid;'],
    ['build', 'export const a = process.pid;'],
  ])('%s compiles with what is its own', (layer, source) => {
    expect(compile(layer, source)).toEqual({ ok: true, output: '' });
  });

  it.each(['shared', 'renderer', 'electron/core'])(
    '%s is strict: no unchecked index, no implicit any',
    (layer) => {
      expect(compile(layer, 'const list: number[] = []; export const a: number = list[0];').ok).toBe(false);
      expect(compile(layer, 'export const f = (a) => a;').ok).toBe(false);
      expect(compile(layer, 'export enum E { A }').ok).toBe(false);
    },
  );
});
