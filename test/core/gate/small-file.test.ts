import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LONGEST_BYTES, readSmallFile } from '../../../electron/core/gate/small-file.ts';
import { runToEnd, tempFolder } from '../../support/gate.ts';

it('a small file of a lane is a plain one of some bytes, and nothing else is opened (rule 17)', async () => {
  using folder = tempFolder();
  const at = (name: string): string => join(folder.path, name);
  writeFileSync(at('plain'), 'text');
  writeFileSync(at('empty'), '');
  writeFileSync(at('huge'), 'x'.repeat(LONGEST_BYTES + 1));
  writeFileSync(at('largest'), 'x'.repeat(LONGEST_BYTES));
  mkdirSync(at('folder'));
  runToEnd(['mkfifo', at('pipe')]);
  symlinkSync(at('plain'), at('link'));
  symlinkSync(at('nothing'), at('dangling'));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(at('socket'), resolve));
  expect(readSmallFile(at('plain'))).toEqual({ kind: 'read', text: 'text' });
  expect(readSmallFile(at('empty'))).toEqual({ kind: 'read', text: '' });
  expect(readSmallFile(at('largest')).kind).toBe('read');
  expect(readSmallFile(at('nothing'))).toEqual({ kind: 'absent' });
  expect(readSmallFile(at('plain/below'))).toEqual({ kind: 'absent' });
  const odd = ['huge', 'folder', 'pipe', 'link', 'dangling', 'socket'].map((name) => readSmallFile(at(name)));
  expect(odd).toEqual([
    { kind: 'odd', why: 'is longer than 65536 bytes' },
    { kind: 'odd', why: 'is a folder' },
    { kind: 'odd', why: 'is a pipe' },
    { kind: 'odd', why: 'is a link' },
    { kind: 'odd', why: 'is a link' },
    { kind: 'odd', why: 'is a socket' },
  ]);
  expect(readSmallFile('/dev/zero')).toEqual({ kind: 'odd', why: 'is a device' });
  server.close();
});
