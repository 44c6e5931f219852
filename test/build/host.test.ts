import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseHost, electronVersion, findElectron, isTooOld } from '../../build/host.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('host: npm start takes Electron only where it can show something', () => {
  const good = {
    env: { DISPLAY: ':0' },
    platform: 'linux',
    uid: 1000,
    electronPath: '/e/electron',
    electronVersion: '45.5.0',
  } as const;

  it('takes Electron with its runtime, a display and an ordinary user', () => {
    expect(chooseHost(good)).toEqual({ kind: 'electron', path: '/e/electron' });
    expect(chooseHost({ ...good, env: { WAYLAND_DISPLAY: 'wayland-0' } }).kind).toBe('electron');
    expect(chooseHost({ ...good, env: {}, platform: 'darwin' }).kind).toBe('electron');
  });

  it.each([
    ['its runtime is missing', { electronPath: null }, /runtime is not there \(`npx install-electron`/],
    [
      'it may show no tray',
      { electronVersion: '44.0.2' },
      /44\.1 or later is needed \(`npx install-electron`/,
    ],
    ['there is no display', { env: { DISPLAY: '' } }, /no display/],
    ['it would have to give up its sandbox', { uid: 0 }, /sandbox/],
  ])('serves and says why in one line when %s', (_why, change, words) => {
    const host = chooseHost({ ...good, ...change });
    expect(host.kind).toBe('serve');
    if (host.kind === 'serve') {
      expect(host.why).toMatch(words);
      expect(host.why).not.toContain('\n');
    }
  });
});

describe('host: no Electron that shows no tray', () => {
  it('takes 44.1 and later, and what does not say', () => {
    for (const version of ['44.1.0', '44.10.0', '45.5.0', 'v46.0.0-beta.1', null, 'nightly'])
      expect(isTooOld(version), String(version)).toBe(false);
    for (const version of ['43.4.1', '44.0.0', 'v44.0.2', '9.9.9'])
      expect(isTooOld(version), version).toBe(true);
  });

  it('is true of the one that the project names', () => {
    const facts = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(facts.devDependencies.electron).toMatch(/^\d+\.\d+\.\d+$/);
    expect(isTooOld(facts.devDependencies.electron)).toBe(false);
  });
});

describe('host: Electron is looked for without loading it, as that would download it', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'landlord-host-'));
    mkdirSync(join(folder, 'node_modules/electron/dist'), { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('finds it only when the program that path.txt names is there', () => {
    expect(findElectron(folder)).toBeNull();
    writeFileSync(join(folder, 'node_modules/electron/path.txt'), 'electron');
    expect(findElectron(folder)).toBeNull();
    writeFileSync(join(folder, 'node_modules/electron/dist/electron'), '');
    const found = findElectron(folder);
    expect(found).toBe(join(folder, 'node_modules/electron/dist/electron'));
    expect(electronVersion(found)).toBeNull();
    writeFileSync(join(folder, 'node_modules/electron/dist/version'), '45.5.0');
    expect(electronVersion(found)).toBe('45.5.0');
    expect(findElectron(folder, { ELECTRON_OVERRIDE_DIST_PATH: join(folder, 'none') })).toBeNull();
  });

  /** A copy of the two files, over stand-ins for what they become. */
  function program(path: string, script: string): void {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    mkdirSync(join(folder, 'build'), { recursive: true });
    for (const name of ['start.ts', 'host.ts'])
      cpSync(join(root, 'build', name), join(folder, 'build', name));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }

  /** As an ordinary user: for root there is no Electron. */
  function start(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
    const ordinary = ['--import', 'data:text/javascript,process.geteuid=()=>1000'];
    return spawnSync(
      process.execPath,
      [...ordinary, '--disable-warning=ExperimentalWarning', join(folder, 'build/start.ts'), ...args],
      { encoding: 'utf8', env: { PATH: process.env.PATH, ...env } },
    );
  }

  it('becomes `landlord serve` with the arguments, its exit code and the reason in one line', () => {
    program('build/landlord', 'echo "$@"; exit 7');
    const child = start({}, '--port', '8000');
    expect(child.stderr).toBe('');
    expect(child.status).toBe(7);
    expect(child.stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/runtime is not there/),
      'serve --port 8000',
    ]);
  });

  it('becomes Electron over the built app, with the arguments, where its runtime is', () => {
    program('node_modules/electron/dist/electron', 'echo "$@"; exit 7');
    writeFileSync(join(folder, 'node_modules/electron/path.txt'), 'electron');
    mkdirSync(join(folder, 'build/package'));
    writeFileSync(
      join(folder, 'build/package/ensure-app.ts'),
      "export async function ensureApp(root, say) { say('Building.'); return root + 'out/app'; }",
    );
    const child = start({ DISPLAY: ':0' }, '--port', '8000');
    expect(child.stderr).toBe('');
    expect(child.stdout.trimEnd().split('\n')).toEqual(['Building.', `${folder}/out/app --port 8000`]);
    expect(child.status).toBe(7);
  });
});
