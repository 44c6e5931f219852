import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findProgram } from '../../../electron/core/gate/program.ts';
import { tempFolder } from '../../support/gate.ts';

describe('the program a turn becomes', () => {
  it('is looked for as a shell does: along PATH, or where a path says', () => {
    using folder = tempFolder();
    const file = join(folder.path, 'tool');
    writeFileSync(file, '#!/bin/sh\n');
    chmodSync(file, 0o755);
    const found = { kind: 'runnable', file, args: ['tool', '-x'] };
    expect(findProgram(['tool', '-x'], `/nowhere:${folder.path}`)).toEqual(found);
    expect(findProgram([file], undefined)).toEqual({ ...found, args: [file] });
    expect(findProgram(['tool'], '/nowhere').kind).toBe('not_found');
    expect(findProgram([], '/bin').kind).toBe('not_found');
    expect(findProgram([''], '/bin').kind).toBe('not_found');
  });

  it('is not a folder, a file without x, or a script whose interpreter is missing', () => {
    using folder = tempFolder();
    mkdirSync(join(folder.path, 'dir'));
    writeFileSync(join(folder.path, 'plain'), '#!/bin/sh\n', { mode: 0o644 });
    writeFileSync(join(folder.path, 'odd'), '#!/no/such/sh\n');
    chmodSync(join(folder.path, 'odd'), 0o755);
    expect(findProgram(['dir'], folder.path).kind).toBe('not_allowed');
    expect(findProgram(['plain'], folder.path).kind).toBe('not_allowed');
    expect(findProgram(['odd'], folder.path).kind).toBe('not_found');
  });

  it('runs a script without #! by sh, as execvp does', () => {
    using folder = tempFolder();
    const file = join(folder.path, 'bare');
    writeFileSync(file, 'echo hello\n');
    chmodSync(file, 0o755);
    expect(findProgram(['bare', 'a'], folder.path)).toEqual({
      kind: 'runnable',
      file: '/bin/sh',
      args: ['sh', file, 'a'],
    });
  });
});
