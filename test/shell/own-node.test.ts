import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findNode } from '../../electron/shell/own-node.ts';
import { ok } from '../../shared/errors.ts';

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

  it('is never Electron: where there is none, that is said', () => {
    expect(findNode(places())).toMatchObject({ ok: false, error: { code: 'not_supported' } });
  });
});
