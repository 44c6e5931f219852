import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { followLog } from '../../../../electron/core/backends/own/follow-log.ts';
import { tempFolder } from '../../../support/gate.ts';

it('gives whole lines, and of a line that never ends what there is of it', () => {
  using folder = tempFolder('follow-log');
  const file = join(folder.path, 'server.log');
  appendFileSync(file, 'before\n');
  const next = followLog(file);
  appendFileSync(file, 'one\ntw');
  expect(next()).toEqual(['one']);
  appendFileSync(file, 'o\n');
  expect(next()).toEqual(['two']);
  appendFileSync(file, '#'.repeat(100_000));
  expect(next()).toEqual(['#'.repeat(100_000)]);
  appendFileSync(file, '\nthree\n');
  expect(next()).toEqual(['', 'three']);
});
