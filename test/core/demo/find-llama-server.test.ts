import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultCacheDir } from '../../../build/fetch-llama-server.mjs';
import { findLlamaServer, PRIVATE_COPY } from '../../../electron/core/demo/find-llama-server.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-find-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function program(name: string, script: string): string {
  const command = join(folder, name, 'llama-server');
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  return command;
}

const places = (...onPath: readonly string[]) => ({
  privateCopy: join(folder, 'private'),
  path: onPath.map((name) => join(folder, name)).join(':'),
});

describe('the search for a llama-server', () => {
  it('looks where set-up puts its copy', () => {
    expect(PRIVATE_COPY).toBe(defaultCacheDir);
  });

  it('takes the private copy first, with the environment its stamp names', async () => {
    program('installed', 'echo version: 2');
    const command = program('private', 'echo "version: 1 $DEMO_LIBS" >&2');
    writeFileSync(
      join(folder, 'private', 'stamp.json'),
      JSON.stringify({ command, env: { DEMO_LIBS: 'own', N: 1 } }),
    );
    expect(await findLlamaServer(places('installed'))).toEqual({
      command,
      env: { DEMO_LIBS: 'own' },
      version: '1 own',
    });
  });

  it('passes over what is not there, is no stamp, or does not run', async () => {
    const command = program('private', 'exit 127');
    program('broken', 'exit 1');
    const good = program('good', 'echo version: 2');
    for (const stamp of ['', '{', 'null', '{"command":1}', JSON.stringify({ command, env: {} })]) {
      writeFileSync(join(folder, 'private', 'stamp.json'), stamp);
      const found = await findLlamaServer(places('nowhere', 'broken', 'good'));
      expect(found).toEqual({ command: good, env: {}, version: '2' });
    }
    expect(await findLlamaServer(places('nowhere', 'broken'))).toBeNull();
  });
});
