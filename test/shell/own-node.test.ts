import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findNode } from '../../electron/shell/own-node.ts';
import { ok } from '../../shared/errors.ts';
import { layerFiles } from '../support/source-files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-node-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (path: string): string => {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '');
  return file;
};
const places = (): Parameters<typeof findNode>[0] => ({
  appPath: join(folder, 'project/out/app'),
  resourcesPath: join(folder, 'resources'),
});

describe('own Node', () => {
  it('is the one of the package, and from sources the project’s', () => {
    const project = put('project/node_modules/node/bin/node');
    expect(findNode(places())).toEqual(ok(project));
    const packed = put('resources/node/bin/node');
    expect(findNode(places())).toEqual(ok(packed));
  });

  it('is said wherever the runtime forks: Electron’s own fork would take its helper program on macOS', () => {
    const forks = layerFiles(join(root, 'electron/core')).flatMap((file) => {
      const source = readFileSync(file, 'utf8');
      return [...source.matchAll(/\bfork\([\s\S]*?\}\);/g)].map(([call]) => call);
    });
    expect(forks.length).toBeGreaterThan(1);
    for (const call of forks) expect(call).toContain('execPath: process.execPath');
  });

  it('is never Electron: where there is none, that is said', () => {
    expect(findNode(places())).toMatchObject({ ok: false, error: { code: 'not_supported' } });
  });
});
