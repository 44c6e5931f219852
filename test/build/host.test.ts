import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseHost, findElectron } from '../../build/host.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('host: npm start takes Electron only where it can show something', () => {
  const good = { env: { DISPLAY: ':0' }, platform: 'linux', uid: 1000, electronPath: '/e/electron' } as const;

  it('takes Electron with its runtime, a display and an ordinary user', () => {
    expect(chooseHost(good)).toEqual({ kind: 'electron', path: '/e/electron' });
    expect(chooseHost({ ...good, env: { WAYLAND_DISPLAY: 'wayland-0' } }).kind).toBe('electron');
    expect(chooseHost({ ...good, env: {}, platform: 'darwin' }).kind).toBe('electron');
  });

  it.each([
    ['its runtime is missing', { electronPath: null }, /runtime is not there/],
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
    expect(findElectron(folder)).toBe(join(folder, 'node_modules/electron/dist/electron'));
    expect(findElectron(folder, { ELECTRON_OVERRIDE_DIST_PATH: join(folder, 'none') })).toBeNull();
  });

  it('becomes `landlord serve` with the arguments, its exit code and the reason in one line', () => {
    // A copy of the two files over a stand-in for the command line.
    mkdirSync(join(folder, 'build'));
    mkdirSync(join(folder, 'electron'));
    for (const file of ['start.ts', 'host.ts']) {
      spawnSync('cp', [join(root, 'build', file), join(folder, 'build', file)]);
    }
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(
      join(folder, 'electron/cli.ts'),
      `console.log(JSON.stringify(process.argv.slice(2))); process.exit(7);`,
    );
    const child = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(folder, 'build/start.ts'), '--port', '8000'],
      { encoding: 'utf8', env: { PATH: process.env.PATH } },
    );
    expect(child.stderr).toBe('');
    expect(child.status).toBe(7);
    expect(child.stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/runtime is not there/),
      '["serve","--port","8000"]',
    ]);
  });
});
