import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quoted, UNIT_MARK, unitFile, unitText } from '../../electron/cli/service-unit.ts';
import { LAUNCHER, landlord } from '../support/landlord.ts';

let folder = '';
let unit = '';
let env: Record<string, string> = {};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-service-'));
  env = {
    XDG_CONFIG_HOME: join(folder, 'config'),
    HOME: folder,
    PATH: `${join(folder, 'bin')}:/usr/bin:/bin`,
  };
  unit = unitFile(env, folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A systemctl that writes down what it was asked, and ends with `code`. */
function standInSystemctl(code = 0): () => readonly string[] {
  const log = join(folder, 'asked');
  const program = join(folder, 'bin', 'systemctl');
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, `#!/bin/sh\necho "$@" >> '${log}'\necho 'No such bus.' >&2\nexit ${code}\n`);
  chmodSync(program, 0o755);
  return () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
}

const service = (...args: readonly string[]) => landlord(['service', ...args], env);

describe('landlord service', () => {
  it('says where it can not write its unit, and does not hang there', async () => {
    standInSystemctl();
    env = { ...env, XDG_CONFIG_HOME: '/proc/no-such-place' };
    expect(await service('install')).toMatchObject({
      code: 69,
      err: expect.stringContaining("can't be written"),
    });
  });

  it('writes a unit that runs `serve` with the same options, and starts it', async () => {
    const asked = standInSystemctl();
    const done = await service('install', '--port', '8000', '--state-dir', join(folder, 'my state'));
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(readFileSync(unit, 'utf8')).toContain(
      `ExecStart=${LAUNCHER} serve --state-dir "${join(folder, 'my state')}" --port 8000\n`,
    );
    expect(asked()).toEqual(['--user daemon-reload', '--user enable --now vram-landlord.service']);
  });

  it('stops and removes what it has installed, and only that', async () => {
    const asked = standInSystemctl();
    await service('install');
    expect(existsSync(unit)).toBe(true);
    expect(await service('uninstall')).toMatchObject({ code: 0 });
    expect(existsSync(unit)).toBe(false);
    expect(asked().slice(2)).toEqual(['--user disable --now vram-landlord.service', '--user daemon-reload']);
    expect(await service('uninstall')).toMatchObject({ code: 0, out: expect.stringContaining('no service') });

    writeFileSync(unit, '[Service]\nExecStart=/usr/bin/other\n');
    for (const what of ['install', 'uninstall']) {
      expect(await service(what)).toMatchObject({
        code: 69,
        err: expect.stringContaining('move it away first'),
      });
    }
    expect(readFileSync(unit, 'utf8')).toContain('/usr/bin/other');
  });

  it('changes nothing on a dry run, and says what it would do', async () => {
    const asked = standInSystemctl();
    const done = await service('install', '--dry-run');
    expect(done.code).toBe(0);
    expect(done.out).toContain(unit);
    expect(done.out).toContain(unitText({ launcher: LAUNCHER, args: [] }));
    expect(done.out).toContain('systemctl --user enable --now vram-landlord.service');
    expect(existsSync(unit)).toBe(false);
    expect(asked()).toEqual([]);
  });

  it('says where systemd can not be asked, and what to run then', async () => {
    standInSystemctl(1);
    const done = await service('install');
    expect(done.code).toBe(69);
    expect(done.err).toContain('is written, but `systemctl --user daemon-reload` failed: No such bus.');
    expect(existsSync(unit)).toBe(true);
    const removed = await service('uninstall');
    expect(removed).toMatchObject({ code: 0, err: expect.stringContaining('stop it by hand') });
    expect(existsSync(unit)).toBe(false);
  });

  it('takes install or uninstall, with options that belong to it', async () => {
    for (const args of [
      [],
      ['start'],
      ['uninstall', '--port', '1'],
      ['install', '--port', 'x'],
      ['install', '--state-dir', ''],
    ])
      expect((await service(...args)).code, args.join(' ')).toBe(64);
  });
});

describe('service unit', () => {
  it('writes each word so that systemd takes it as it is', () => {
    expect(quoted('/usr/bin/landlord')).toBe('/usr/bin/landlord');
    expect(quoted('/opt/VRAM Landlord/landlord')).toBe('"/opt/VRAM Landlord/landlord"');
    expect(quoted('100%')).toBe('100%%');
    expect(quoted('$HOME')).toBe('$$HOME');
    expect(quoted('a"b\\c')).toBe('"a\\"b\\\\c"');
    expect(quoted('a\nExecStartPost=/bin/true')).toBe('"a\\u000aExecStartPost=/bin/true"');
    expect(quoted('')).toBe('""');
  });

  it('lies where systemd looks for a user’s units, and is known as ours', () => {
    expect(unitFile({}, '/home/a')).toBe('/home/a/.config/systemd/user/vram-landlord.service');
    expect(unitFile({ XDG_CONFIG_HOME: '/c' }, '/home/a')).toBe('/c/systemd/user/vram-landlord.service');
    expect(unitFile({ XDG_CONFIG_HOME: 'relative' }, '/home/a')).toMatch(/^\/home\/a/);
    expect(unitText({ launcher: '/l', args: [] }).startsWith(UNIT_MARK)).toBe(true);
  });

  it('passes systemd’s own check where that is there', async () => {
    const { spawnSync } = await import('node:child_process');
    const file = join(folder, 'vram-landlord.service');
    writeFileSync(file, unitText({ launcher: '/bin/true', args: ['--state-dir', folder] }));
    const checked = spawnSync('systemd-analyze', ['--user', 'verify', file], {
      encoding: 'utf8',
      env: { ...process.env, XDG_RUNTIME_DIR: folder },
    });
    // Without it there is nothing to ask; its text is then checked for its sections alone.
    if (checked.error === undefined) expect(checked.stderr).toBe('');
    expect(readFileSync(file, 'utf8').match(/^\[\w+\]$/gm)).toEqual(['[Unit]', '[Service]', '[Install]']);
  });
});
