/**
 * The import rule, proved: renderer → shared; core → shared; shell → core, shared; nothing imports
 * the shell but main.ts; only shell, main and preload import 'electron'. tsconfig withholds the
 * types; this looks at every import there is, so that a `types` entry too many does not open a door.
 *
 *   shared ◄── renderer
 *     ▲  ▲
 *     │  └──── core ◄── cli
 *     │         ▲
 *     └─────── shell ◄── main          preload → shared
 */
import { isBuiltin } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import type { ImportRef } from './imports.ts';

export type Layer =
  | 'shared'
  | 'renderer'
  | 'core'
  | 'cli'
  | 'shell'
  | 'main'
  | 'preload'
  | 'build'
  | 'test'
  | 'other';

export interface Violation {
  readonly file: string;
  readonly line: number;
  /** One sentence: what is imported and why it may not be. */
  readonly message: string;
}

interface LayerRule {
  readonly layers: readonly Layer[];
  /** `all`: any package. A list: these alone (with their subpaths). */
  readonly packages: 'all' | readonly string[];
  readonly node: boolean;
  readonly electron: 'yes' | 'types' | 'no';
}

const RULES: Readonly<Record<Layer, LayerRule>> = {
  shared: { layers: ['shared'], packages: ['zod'], node: false, electron: 'no' },
  renderer: {
    layers: ['renderer', 'shared'],
    packages: [
      'react',
      'react-dom',
      'zustand',
      'uplot',
      '@radix-ui/react-slider',
      '@radix-ui/react-switch',
      '@radix-ui/react-toggle-group',
    ],
    node: false,
    electron: 'no',
  },
  core: { layers: ['core', 'shared'], packages: 'all', node: true, electron: 'no' },
  cli: { layers: ['cli', 'core', 'shared'], packages: 'all', node: true, electron: 'no' },
  shell: { layers: ['shell', 'core', 'shared'], packages: 'all', node: true, electron: 'yes' },
  main: { layers: ['shell', 'core', 'shared'], packages: 'all', node: true, electron: 'yes' },
  preload: { layers: ['shared'], packages: [], node: false, electron: 'yes' },
  build: { layers: ['build', 'core', 'shared'], packages: 'all', node: true, electron: 'no' },
  // Tests reach every layer, and stand in for Electron by its types alone.
  test: {
    layers: ['shared', 'renderer', 'core', 'cli', 'shell', 'main', 'preload', 'build', 'test'],
    packages: 'all',
    node: true,
    electron: 'types',
  },
  other: { layers: [], packages: [], node: false, electron: 'no' },
};

/** Packages of one layer that others may not take in though they may have packages. */
const FOREIGN_PACKAGES: Readonly<Partial<Record<Layer, readonly string[]>>> = {
  core: ['react', 'react-dom', 'zustand', 'vite', 'vitest', 'playwright-core'],
  cli: ['react', 'react-dom', 'vite', 'vitest', 'playwright-core'],
  shell: ['react', 'react-dom', 'vite', 'vitest', 'playwright-core'],
  main: ['react', 'react-dom', 'vite', 'vitest', 'playwright-core'],
};

/** The layer of a file, from its path relative to the repository, with forward slashes. */
export function layerOf(file: string): Layer {
  if (file === 'electron/main.ts') return 'main';
  if (file === 'electron/preload.ts') return 'preload';
  if (file === 'electron/cli.ts' || file.startsWith('electron/cli/')) return 'cli';
  if (file.startsWith('electron/core/')) return 'core';
  if (file.startsWith('electron/shell/')) return 'shell';
  for (const layer of ['shared', 'renderer', 'build', 'test'] as const) {
    if (file.startsWith(`${layer}/`)) return layer;
  }
  return 'other';
}

/** What is wrong with the imports of one file. */
export function checkImports(file: string, imports: readonly ImportRef[]): readonly Violation[] {
  const layer = layerOf(file);
  const rule = RULES[layer];
  const found: Violation[] = [];
  if (layer === 'other') {
    return [
      { file, line: 1, message: `${file} lies in no layer: move it into one of those in build/layers.ts.` },
    ];
  }
  for (const ref of imports) {
    const wrong = whyWrong(file, layer, rule, ref);
    if (wrong !== null) found.push({ file, line: ref.line, message: wrong });
  }
  return found;
}

function whyWrong(file: string, layer: Layer, rule: LayerRule, ref: ImportRef): string | null {
  const { specifier } = ref;
  if (specifier === null) {
    return layer === 'test' || layer === 'build'
      ? null
      : 'an import whose target is computed can not be checked: write it out.';
  }
  if (specifier === 'electron' || specifier.startsWith('electron/')) {
    if (rule.electron === 'yes' || (rule.electron === 'types' && ref.typeOnly)) return null;
    return rule.electron === 'types'
      ? `${layer} imports 'electron' for its types only: its program need not be there.`
      : `${layer} may not import 'electron': only shell, main and preload may.`;
  }
  if (specifier.startsWith('.') || specifier.startsWith('/')) {
    if (specifier.startsWith('/')) return `'${specifier}' is an absolute path: import by a relative one.`;
    const target = layerOf(normalize(join(dirname(file), specifier)));
    if (rule.layers.includes(target)) return null;
    return `${layer} may not import ${target} ('${specifier}'); it may import ${rule.layers.join(', ')}.`;
  }
  if (isBuiltin(specifier)) {
    return rule.node
      ? null
      : `${layer} may not import Node's '${specifier}': it also runs where there is no Node.`;
  }
  const name = packageName(specifier);
  if (rule.packages !== 'all') {
    if (rule.packages.includes(name)) return null;
    return `${layer} may not import the package '${name}'; it may import ${rule.packages.join(', ') || 'none'}.`;
  }
  return FOREIGN_PACKAGES[layer]?.includes(name)
    ? `${layer} may not import '${name}': it belongs to another layer.`
    : null;
}

/** `@scope/name` or `name`, without the path inside the package. */
export function packageName(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
}
