import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleServe } from '../../build/package/serve-bundle.ts';
import { isFresh } from '../../build/setup/fresh.mjs';

const root = resolve(import.meta.dirname, '../..');
const node = join(root, 'node_modules/node/bin/node');
let folder = '';
let program = '';

beforeAll(async () => {
  // As deep as the real one, so that it finds the sources, the page and the packages beside it.
  mkdirSync(join(root, 'out'), { recursive: true });
  folder = mkdtempSync(join(root, 'out/node-test-'));
  program = await bundleServe(root, folder);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Its own words, and the files it came from. */
function ask(file: string): { readonly out: string; readonly loaded: readonly string[] } {
  const hook = join(folder, 'hook.cjs');
  writeFileSync(
    hook,
    `const loaded = [];
    require('node:module').registerHooks({
      load(url, context, next) { loaded.push(url); return next(url, context); },
    });
    process.on('exit', () => console.error(JSON.stringify(loaded)));`,
  );
  const args = ['--disable-warning=ExperimentalWarning', '--require', hook, file, 'serve', '--help'];
  const ran = spawnSync(node, args, { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } });
  return { out: ran.stdout, loaded: JSON.parse(ran.stderr.trim().split('\n').at(-1) ?? '[]') };
}

const ofSources = (loaded: readonly string[]): readonly string[] =>
  loaded.filter((url) => url.startsWith('file:') && url.endsWith('.ts'));

describe('`landlord serve` of a checkout', () => {
  it('runs what was built of the sources, and none of them', () => {
    const { out, loaded } = ask(program);
    expect(out).toBe(ask(join(root, 'electron/cli.ts')).out);
    expect(loaded.some((url) => url.endsWith(`/cli.js`))).toBe(true);
    expect(ofSources(loaded)).toEqual([]);
  });

  it('runs the sources where one of them has changed, or where it lies elsewhere than it was made for', () => {
    const text = readFileSync(program, 'utf8');
    const main = join(root, 'electron/cli/main.ts');
    const changed = text.replace(new RegExp(`(\\["${main}",)(\\d+)`), '$11$2');
    expect(changed).not.toBe(text);
    const elsewhere = text.replace(JSON.stringify(folder), JSON.stringify('/elsewhere'));
    expect(elsewhere).not.toBe(text);
    try {
      for (const other of [changed, elsewhere]) {
        writeFileSync(program, other);
        const { out, loaded } = ask(program);
        expect(out).toContain('landlord serve');
        expect(ofSources(loaded).some((url) => url.endsWith('electron/cli/main.ts'))).toBe(true);
      }
    } finally {
      writeFileSync(program, text);
    }
  });

  it('is known to be of the sources that lie here, or not', () => {
    expect(isFresh(program)).toBe(true);
    const list = join(folder, 'sources.json');
    const text = readFileSync(list, 'utf8');
    expect(text).toContain(join(root, 'package-lock.json'));
    try {
      writeFileSync(list, text.replace(/"sizeBytes": \d+/, '"sizeBytes": 1'));
      expect(isFresh(program)).toBe(false);
    } finally {
      writeFileSync(list, text);
    }
  });

  it('keeps what an earlier build left, which a running runtime may still load, for 30 days', async () => {
    const recent = join(folder, 'undici-recent.js');
    const old = join(folder, 'undici-old.js');
    for (const file of [recent, old]) writeFileSync(file, '');
    utimesSync(old, new Date(0), new Date(0));
    await bundleServe(root, folder);
    expect(() => readFileSync(recent)).not.toThrow();
    expect(() => readFileSync(old)).toThrow();
  }, 120_000);
});
