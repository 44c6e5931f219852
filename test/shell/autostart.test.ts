import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  autostartPath,
  desktopEntry,
  isEntryOn,
  linuxAutostart,
  loginItem,
  quoteExec,
  startCommand,
} from '../../electron/shell/autostart.ts';
import { createFakeDesk } from '../fakes/desk.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-autostart-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe('autostart: an entry in the session', () => {
  it('is written, read back and removed', async () => {
    const path = autostartPath({ XDG_CONFIG_HOME: folder }, '/home/nobody');
    const autostart = linuxAutostart(path, ['/opt/VRAM Landlord/vram-landlord', '--hidden']);
    expect(await autostart.isOn()).toBe(false);
    expect(await autostart.set(true)).toEqual({ ok: true, value: null });
    expect(await autostart.isOn()).toBe(true);
    expect(await readFile(path, 'utf8')).toContain('Exec="/opt/VRAM Landlord/vram-landlord" "--hidden"\n');
    expect((await autostart.set(false)).ok).toBe(true);
    expect(await autostart.isOn()).toBe(false);
    expect((await autostart.set(false)).ok).toBe(true);
  });

  it('says what can not be written', async () => {
    const path = join(folder, 'file', 'entry.desktop');
    await writeFile(dirname(path), 'in the way');
    const done = await linuxAutostart(path, ['x']).set(true);
    expect(done).toMatchObject({ ok: false, error: { code: 'storage_failed' } });
    const nowhere = linuxAutostart('/proc/no-such-place/autostart/entry.desktop', ['x']);
    expect(await nowhere.set(true)).toMatchObject({ error: { code: 'storage_failed' } });
  });

  it('is off when the desktop has turned it off', () => {
    const entry = desktopEntry(['x']);
    expect(isEntryOn(entry)).toBe(true);
    expect(isEntryOn(`${entry}Hidden=true\n`)).toBe(false);
    expect(isEntryOn(entry.replace('enabled=true', 'enabled=false'))).toBe(false);
  });

  it('keeps every character of a path a character', () => {
    expect(quoteExec('/a b')).toBe('"/a b"');
    // Escaped for the quotes, then each backslash for the string: the specification's own four.
    expect(quoteExec('$`"\\')).toBe('"\\\\$\\\\`\\\\"\\\\\\\\"');
    expect(quoteExec('100%u')).toBe('"100%%u"');
    expect(quoteExec('a\nTerminal=true\r')).toBe('"a\\nTerminal=true\\r"');
  });

  it('starts what was started: an AppImage, a package, or the sources', () => {
    const electronPath = '/opt/landlord/vram-landlord';
    expect(startCommand({ env: { APPIMAGE: '/home/a/L.AppImage' }, electronPath, appPath: null })).toEqual([
      '/home/a/L.AppImage',
      '--hidden',
    ]);
    expect(startCommand({ env: {}, electronPath, appPath: null })).toEqual([electronPath, '--hidden']);
    expect(startCommand({ env: { APPIMAGE: 'not/absolute' }, electronPath, appPath: '/src' })).toEqual([
      electronPath,
      '/src',
      '--hidden',
    ]);
  });

  it('ignores a relative XDG folder, as the specification says', () => {
    expect(autostartPath({ XDG_CONFIG_HOME: 'x' }, '/home/a')).toMatch(/^\/home\/a\/\.config\/autostart\//);
  });
});

describe('autostart: elsewhere', () => {
  it('is the login item of the system', async () => {
    const electron = createFakeDesk();
    const autostart = loginItem(electron.loginItems);
    await autostart.set(true);
    expect(electron.openAtLogin).toBe(true);
    expect(await autostart.isOn()).toBe(true);
  });
});
