import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolders } from '../../electron/core/make-folders.ts';

describe('folders', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'landlord-folders-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('are made with what is missing above them, and again is no error', () => {
    const path = join(root, 'a/b/c');
    makeFolders(path, 0o700);
    makeFolders(path, 0o700);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, 'a')).mode & 0o777).toBe(0o700);
  });

  it('fail at once where none can be made, though the parent is there (rule 17: no turn hangs)', () => {
    expect(() => makeFolders('/proc/no-such-place', 0o700)).toThrow(/ENOENT/);
    expect(() => makeFolders('/proc/no-such-place/deeper', 0o700)).toThrow(/ENOENT/);
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolders(join(root, 'file/below'), 0o700)).toThrow(/ENOTDIR/);
  });
});
