import { execFileSync } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ConfigReader, readHere, readInChild } from '../../../electron/core/settings/config-reader.ts';
import { defaults } from '../../../electron/core/settings/defaults.ts';
import { SettingsFile } from '../../../electron/core/settings/settings-file.ts';
import { type LandlordPaths, resolvePaths } from '../../../electron/core/state-dir/paths.ts';
import type { NewEvent } from '../../../shared/events.ts';
import type { Settings } from '../../../shared/settings.ts';

let dir = '';
let paths: LandlordPaths;
let open: SettingsFile[] = [];
let events: NewEvent[] = [];
let changes: Settings[] = [];
let clockMs = Date.UTC(2026, 0, 2, 3, 4, 5);

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-settings-'));
  paths = resolvePaths({ env: {}, home: dir, cwd: dir, stateDir: join(dir, 'state') });
  await mkdir(paths.stateDir);
  await mkdir(paths.configDir, { recursive: true });
  open = [];
  events = [];
  changes = [];
});

afterEach(async () => {
  for (const file of open) await file.stop();
  await rm(dir, { recursive: true, force: true });
});

function settingsFile(reader: ConfigReader = readHere): SettingsFile {
  const file = new SettingsFile({
    paths,
    home: dir,
    reader,
    now: () => clockMs,
    pollMs: 20,
    settleMs: 10,
    onSettings: (settings) => changes.push(settings),
    onEvent: (event) => events.push(event),
  });
  open.push(file);
  return file;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const rejectedCopies = async () =>
  (await readdir(paths.configDir)).filter((name) => name.startsWith('config.yaml.rejected-'));

describe('SettingsFile', () => {
  it('is not held up by a pipe in the place of the config, nor by a file of gigabytes', async () => {
    execFileSync('mkfifo', [paths.configFile]);
    const piped = await settingsFile().start();
    expect([piped.source, piped.rejection?.message]).toEqual([
      'cautious',
      expect.stringContaining('no file'),
    ]);
    await rm(paths.configFile);
    await writeFile(paths.configFile, '');
    await truncate(paths.configFile, 64 * 2 ** 30);
    const large = await settingsFile().start();
    expect(large.rejection?.message).toContain('larger than any config');
  });

  it('has the defaults where there is no config, says nothing, and publishes the schema', async () => {
    await rm(paths.configDir, { recursive: true });
    const status = await settingsFile().start();
    expect(status).toEqual({ settings: defaults(), source: 'defaults', rejection: null, rejectedCopy: null });
    expect(events).toEqual([]);
    await until(async () => (await readdir(paths.configDir)).includes('config.schema.json'));
    expect((await stat(paths.configDir)).mode & 0o777).toBe(0o700);
  });

  it('leaves a schema alone that is already right', async () => {
    const schema = await readHere.schemaText();
    await writeFile(paths.schemaFile, schema);
    const before = await stat(paths.schemaFile);
    const file = settingsFile();
    await file.start();
    await file.write(['maxBig'], 1);
    expect((await stat(paths.schemaFile)).ino).toBe(before.ino);
    await writeFile(paths.schemaFile, 'old');
    await settingsFile().start();
    await until(async () => (await readFile(paths.schemaFile, 'utf8')) === schema);
  });

  it.each([
    ['written in place', (text: string) => writeFile(paths.configFile, text)],
    [
      'replaced by rename, as editors do',
      async (text: string) => {
        await writeFile(`${paths.configFile}~new`, text);
        await rename(`${paths.configFile}~new`, paths.configFile);
      },
    ],
  ])('takes a config over that is %s', async (_how, put) => {
    await put('maxBig: 1\n');
    const file = settingsFile();
    expect((await file.start()).settings.maxBig).toBe(1);
    await put('maxBig: 2\n');
    await until(() => file.status().settings.maxBig === 2);
    expect(changes.map((settings) => settings.maxBig)).toEqual([2]);
    expect(events.map((event) => event.kind)).toEqual(['config_loaded', 'config_loaded']);
    await put('maxBig: 2 # with a note\n');
    await put('maxBig: 3\n');
    await until(() => file.status().settings.maxBig === 3);
    expect(changes).toHaveLength(2);
  });

  it('sees a change behind a symbolic link, which the kernel does not tell of', async () => {
    const target = join(dir, 'dotfiles.yaml');
    await writeFile(target, 'maxBig: 1\n');
    await symlink(target, paths.configFile);
    const file = settingsFile();
    await file.start();
    await writeFile(target, 'maxBig: 2\n');
    await until(() => file.status().settings.maxBig === 2);
    expect((await file.write(['maxBig'], 3)).ok).toBe(true);
    expect(await readFile(target, 'utf8')).toBe('maxBig: 3\n');
  });

  it('keeps the last good settings, and a copy of a config that does not parse, and names place and copy', async () => {
    await writeFile(paths.configFile, 'maxBig: 1\n');
    const file = settingsFile();
    await file.start();
    await writeFile(paths.configFile, 'maxBig: 1\nidel: 3s\n');
    await until(() => file.status().rejection !== null);
    expect(file.status()).toMatchObject({ settings: { maxBig: 1 }, source: 'kept' });
    expect(changes).toEqual([]);
    const event = events.at(-1);
    expect(event).toMatchObject({ kind: 'config_rejected', numbers: { problems: 1, line: 2, column: 1 } });
    expect(event?.reason).toContain(
      `${paths.configFile}:2:1: idel: is not a setting; did you mean idle? A copy`,
    );
    expect(event?.reason).toContain('config.yaml.rejected-20260102T030405Z');
    expect(await rejectedCopies()).toEqual(['config.yaml.rejected-20260102T030405Z']);
    // The person's own file stays where it is.
    expect(await readFile(paths.configFile, 'utf8')).toContain('idel');
    expect((await stat(join(paths.configDir, 'config.yaml.rejected-20260102T030405Z'))).mode & 0o777).toBe(
      0o600,
    );

    await writeFile(paths.configFile, 'maxBig: 4\n');
    await until(() => file.status().rejection === null);
    expect(file.status()).toMatchObject({ settings: { maxBig: 4 }, source: 'file' });
  });

  it('keeps one copy of one text, and the newest five of many', async () => {
    const file = settingsFile();
    await file.start();
    for (const index of [1, 2, 3, 4, 5, 6, 7]) {
      clockMs += 1000;
      await writeFile(paths.configFile, `wrong${index}: 1\n`);
      await until(() => events.length === index);
    }
    const copies = await rejectedCopies();
    expect(copies).toHaveLength(5);
    expect(await readFile(join(paths.configDir, copies.at(-1) ?? ''), 'utf8')).toBe('wrong7: 1\n');
    clockMs += 1000;
    await settingsFile().start();
    expect(await rejectedCopies()).toEqual(copies);
  });

  it('starts on the last good settings of an earlier run when the config is bad now', async () => {
    await writeFile(paths.configFile, 'maxBig: 1\nguards: on\n');
    const first = settingsFile();
    await first.start();
    await first.stop();
    await writeFile(paths.configFile, 'maxBig: [\n');
    const status = await settingsFile().start();
    expect(status).toMatchObject({ source: 'last-good', settings: { maxBig: 1, guards: 'on' } });
    expect(status.rejection?.message).toContain(':2:1');
    expect(events.at(-1)?.reason).toContain('last good settings are in force');
  });

  it('only observes when the config is bad and none was ever good', async () => {
    await writeFile(paths.configFile, 'floor: lots\n');
    const status = await settingsFile().start();
    expect(status).toMatchObject({ source: 'cautious', settings: { guards: 'observe' } });
    expect(events.at(-1)?.reason).toContain('only observe');
  });

  it('goes back to the defaults when the config is removed, but not while an editor swaps it', async () => {
    await writeFile(paths.configFile, 'maxBig: 1\n');
    const file = settingsFile();
    await file.start();
    await rename(paths.configFile, `${paths.configFile}.bak`);
    await new Promise((resolve) => setTimeout(resolve, 40));
    await writeFile(paths.configFile, '');
    await new Promise((resolve) => setTimeout(resolve, 40));
    await writeFile(paths.configFile, 'maxBig: 2\n');
    await until(() => file.status().settings.maxBig === 2);
    expect(changes.map((settings) => settings.maxBig)).toEqual([2]);
    await rm(paths.configFile);
    await until(() => file.status().source === 'defaults');
    expect(changes.at(-1)).toEqual(defaults());
    expect(events.at(-1)?.reason).toContain('is gone');
  });

  it('says that a config can not be read, and keeps no copy of it', async () => {
    await mkdir(paths.configFile);
    const status = await settingsFile().start();
    expect(status.rejection?.message).toContain('it is no file');
    expect(status.source).toBe('cautious');
    expect(await rejectedCopies()).toEqual([]);
  });

  it('writes one value with the comments kept, and refuses what would not be accepted', async () => {
    await writeFile(paths.configFile, '# mine\nmaxBig: 1 # one\n');
    await chmod(paths.configFile, 0o640);
    const file = settingsFile();
    await file.start();
    expect(await file.write(['guards'], 'on')).toEqual({ ok: true, value: undefined });
    expect(file.status().settings.guards).toBe('on');
    expect(await readFile(paths.configFile, 'utf8')).toBe('# mine\nmaxBig: 1 # one\nguards: on\n');
    expect((await stat(paths.configFile)).mode & 0o777).toBe(0o640);
    expect(changes).toHaveLength(1);
    expect(await file.write(['guards'], 'onn')).toMatchObject({
      ok: false,
      error: { code: 'config_rejected' },
    });
    expect(await readFile(paths.configFile, 'utf8')).toContain('guards: on\n');
  });

  it('reads alike in a child, and reads here when no child can be run', async () => {
    const text = 'small: [/a/]\nfloor: { keep: 4GB }\nfootprints: { q: 2GB }\n';
    const here = await readHere.parse(text, 'c.yaml', '/h');
    expect(here.ok).toBe(true);
    const child = readInChild(process.execPath);
    expect(await child.parse(text, 'c.yaml', '/h')).toEqual(here);
    expect(await child.parse('idel: 1', 'c.yaml', null)).toEqual(
      await readHere.parse('idel: 1', 'c.yaml', null),
    );
    expect(await child.schemaText()).toBe(await readHere.schemaText());
    expect(await readInChild('/nonexistent').parse(text, 'c.yaml', '/h')).toEqual(here);
  });
});
