/** The script of the README's pictures: it still reaches each state over the real runtime. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'landlord-pictures-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Width and height stand behind the signature and the first chunk's name (PNG specification, 11.2.2). */
function sizeOf(file: string): string {
  const bytes = readFileSync(file);
  expect(bytes.subarray(1, 4).toString('latin1')).toBe('PNG');
  return `${bytes.readUInt32BE(16)} × ${bytes.readUInt32BE(20)}`;
}

describe('the pictures of the README', () => {
  it('are taken by the script from real states, each another', { timeout: 300_000 }, () => {
    const done = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(root, 'build/screenshots.ts'), '--out', folder],
      { cwd: root, encoding: 'utf8', timeout: 280_000 },
    );
    expect(done.stderr).toBe('');
    expect(done.status).toBe(0);
    const files = readdirSync(folder).sort();
    expect(files).toEqual(
      ['after-eviction', 'asleep', 'fine', 'threatened', 'three-agents'].flatMap((name) =>
        ['narrow-dark', 'narrow-light', 'wide-dark', 'wide-light'].map((look) => `${name}-${look}.png`),
      ),
    );
    expect(files.map((file) => sizeOf(join(folder, file)))).toEqual(
      files.map((file) => (file.includes('-wide-') ? '1100 × 720' : '420 × 720')),
    );
    const looks = files.map((file) =>
      createHash('sha256')
        .update(readFileSync(join(folder, file)))
        .digest('hex'),
    );
    expect(new Set(looks).size).toBe(files.length);
  });

  it('have the sizes that the script gives them', () => {
    const sizes = ['window', 'window-agents', 'window-narrow'].map((name) =>
      sizeOf(join(root, `build/docs/${name}.png`)),
    );
    expect(sizes).toEqual(['1100 × 720', '1100 × 720', '420 × 720']);
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const shown = [...readme.matchAll(/\]\(build\/docs\/([\w-]+)\.png\)/g)].map((match) => match[1]);
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.filter((name) => !/^window/.test(name ?? ''))).toEqual([]);
  });
});
