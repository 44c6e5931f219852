import { chmodSync, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownCompileCache } from '../../electron/cli/compile-cache.ts';
import { tempFolder } from '../support/gate.ts';

describe('the folder of compiled code, which is run', () => {
  it('is made for its user alone, also where the umask forbids nothing', () => {
    using folder = tempFolder('compile-cache');
    const before = process.umask(0);
    try {
      const cache = join(folder.path, 'cache', 'vram-landlord', 'compile');
      expect(ownCompileCache(cache)).toBe(cache);
      for (const path of [cache, join(cache, '..'), join(cache, '..', '..')])
        expect(statSync(path).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  it('is not used where everybody may have written to it, nor where it leads elsewhere', () => {
    using folder = tempFolder('compile-cache');
    const cache = join(folder.path, 'compile');
    mkdirSync(cache);
    expect(ownCompileCache(cache)).toBe(cache);
    chmodSync(cache, 0o777);
    expect(ownCompileCache(cache)).toBeNull();
    symlinkSync(cache, join(folder.path, 'link'));
    expect(ownCompileCache(join(folder.path, 'link'))).toBeNull();
    expect(ownCompileCache('/proc/nowhere')).toBeNull();
  });
});
