import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadOrCreateToken, readToken, tokenMatches } from '../../../electron/core/state-dir/token.ts';

let dir = '';
let file = '';

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-token-'));
  file = join(dir, 'token');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function load(): Promise<{ token: string; notes: readonly string[] }> {
  const loaded = await loadOrCreateToken(file, process.geteuid?.() ?? null);
  if (!loaded.ok) throw new Error(loaded.error.message);
  return { ...loaded.value };
}

describe('token', () => {
  it('is made once with mode 600 and stays the same, also when many start at once', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => load()));
    expect(new Set(all.map((one) => one.token)).size).toBe(1);
    expect(all[0]?.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(['token']);
    expect(await readToken(file)).toEqual({ ok: true, value: { token: all[0]?.token, notes: [] } });
  });

  it('has its loose permissions put right and said, without the token in the sentence', async () => {
    const { token } = await load();
    await chmod(file, 0o644);
    const again = await load();
    expect(again.token).toBe(token);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(again.notes.join(' ')).toContain('mode 644');
    expect(again.notes.join(' ')).not.toContain(token);
  });

  it.each(['', 'short\n', `${'a'.repeat(44)}\n`])('replaces a file that holds %j', async (text) => {
    await writeFile(file, text, { mode: 0o600 });
    const { token, notes } = await load();
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect((await readFile(file, 'utf8')).trim()).toBe(token);
    expect(notes).toHaveLength(1);
  });

  it('follows no symbolic link and refuses a file of another user', async () => {
    await writeFile(join(dir, 'other'), 'x');
    await symlink(join(dir, 'other'), file);
    expect(await loadOrCreateToken(file, null)).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
    await rm(file);
    await load();
    const uid = (process.geteuid?.() ?? 0) + 1;
    expect(await loadOrCreateToken(file, uid)).toMatchObject({ ok: false, error: { code: 'not_permitted' } });
  });

  it('matches itself and nothing else, of whatever length', () => {
    expect(tokenMatches('abc', 'abc')).toBe(true);
    expect(tokenMatches('abc', 'abd')).toBe(false);
    expect(tokenMatches('abc', '')).toBe(false);
    expect(tokenMatches('abc', 'abcabc')).toBe(false);
  });
});
