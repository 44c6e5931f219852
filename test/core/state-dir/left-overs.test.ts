import { mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeAwayLeftOvers } from '../../../electron/core/state-dir/left-overs.ts';

const NOW_MS = Date.parse('2026-03-04T09:00:00Z');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-left-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, ageMs: number): void {
  const path = join(folder, name);
  writeFileSync(path, 'x');
  const at = new Date(NOW_MS - ageMs);
  utimesSync(path, at, at);
}

describe('what a killed writer left', () => {
  it('is taken away beside its own file, and nothing else is', async () => {
    const old = 3_600_000;
    const stay = [
      'config.yaml',
      'config.yaml.tmp',
      'config.yaml.0123456789ab.tmp.mine',
      'other.yaml.0123456789ab.tmp',
      'config.yaml.0123456789ab',
    ];
    for (const name of stay) file(name, old);
    file('config.yaml.0123456789ab.tmp', old);
    file('token.ffffffffffff.tmp', old);
    file('token.aaaaaaaaaaaa.tmp', 1_000);
    symlinkSync(join(folder, 'config.yaml'), join(folder, 'token.bbbbbbbbbbbb.tmp'));
    const files = [join(folder, 'config.yaml'), join(folder, 'token')];
    expect(await takeAwayLeftOvers(files, NOW_MS)).toBe(2);
    expect(readdirSync(folder).toSorted()).toEqual(
      [...stay, 'token.aaaaaaaaaaaa.tmp', 'token.bbbbbbbbbbbb.tmp'].toSorted(),
    );
  });

  it('in a folder that is not there is nothing', async () => {
    expect(await takeAwayLeftOvers([join(folder, 'none', 'config.yaml')], NOW_MS)).toBe(0);
  });
});
