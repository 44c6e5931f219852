import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findChromium } from '../../build/setup/chromium.mjs';
import { linkCommand } from '../../build/setup/command.mjs';
import { ensureCompiled, launcherFlags } from '../../build/setup/compiled.mjs';
import {
  checkVersions,
  ensurePackages,
  explainInstallFailure,
  matchesLock,
  pathWithoutPackages,
  staleReason,
  verifyPackages,
} from '../../build/setup/packages.mjs';
import { hashSources } from '../../build/setup/page.mjs';
import { lastLines, runProgram, SetupError, Steps } from '../../build/setup/steps.mjs';

let folder = '';
let savedPath: string | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-setup-'));
  savedPath = process.env.PATH;
});
afterEach(() => {
  process.env.PATH = savedPath;
  rmSync(folder, { recursive: true, force: true });
});

function recorder(): { readonly steps: Steps; text(): string } {
  let text = '';
  return {
    steps: new Steps({
      write: (part) => {
        text += part;
      },
    }),
    text: () => text,
  };
}

function program(name: string, script: string): void {
  mkdirSync(join(folder, 'bin'), { recursive: true });
  writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, 'bin', name), 0o755);
}

const lockOf = (packages: Record<string, object>): string =>
  JSON.stringify({ packages: { '': {}, ...packages } });

describe('setup: installs only when it must', () => {
  const lock = lockOf({
    'node_modules/a': { version: '1.2.3' },
    'node_modules/b-win32': { version: '1.0.0', optional: true },
  });

  it('is fresh when the stamp is of this lock, and stale when the lock has changed', () => {
    const files = { lock, installed: '{}' };
    expect(staleReason('h1', JSON.stringify({ lock: 'h1' }), files)).toBeNull();
    expect(staleReason('h2', JSON.stringify({ lock: 'h1' }), files)).toMatch(/changed/);
    expect(staleReason('h1', null, { lock, installed: null })).toBe('none yet');
  });

  it('takes a hand-made install for good when every locked version is there', () => {
    const installed = lockOf({ 'node_modules/a': { version: '1.2.3' } });
    expect(staleReason('h1', null, { lock, installed })).toBeNull();
    expect(matchesLock(lock, lockOf({ 'node_modules/a': { version: '1.2.4' } }))).toBe(false);
    expect(matchesLock(lock, lockOf({}))).toBe(false);
    expect(matchesLock(lock, '{"packages":')).toBe(false);
  });

  it('never runs npm on the Node that npm is about to remove', () => {
    expect(pathWithoutPackages('/p/node_modules/.bin:/usr/bin:/q/node_modules/npm/x:/bin')).toBe(
      '/usr/bin:/bin',
    );
  });

  it('runs npm ci once, shows it on one line with its seconds, and not again', async () => {
    writeFileSync(join(folder, 'package-lock.json'), lock);
    program(
      'npm',
      `echo "$@" >> "${folder}/calls"; mkdir -p node_modules; echo '{}' > node_modules/.package-lock.json`,
    );
    process.env.PATH = `${join(folder, 'bin')}:${savedPath}`;
    const first = recorder();
    await ensurePackages(folder, first.steps);
    expect(first.text()).toMatch(/^ {2}Installing packages with npm .* … \d+\.\d s\n$/);
    const second = recorder();
    await ensurePackages(folder, second.steps);
    expect(second.text()).toBe('');
    const calls = await runProgram('cat', [join(folder, 'calls')]);
    expect(calls.output).toMatch(/^ci [^\n]*\n$/);
  });

  it('shows the last lines of a failed install and what to do', async () => {
    writeFileSync(join(folder, 'package-lock.json'), lock);
    program('npm', `echo 'npm error code ENOTFOUND' >&2; echo 'npm error network getaddrinfo' >&2; exit 1`);
    process.env.PATH = `${join(folder, 'bin')}:${savedPath}`;
    const { steps, text } = recorder();
    await expect(ensurePackages(folder, steps)).rejects.toThrow(
      /npm error network getaddrinfo[\s\S]*registry could not be reached/,
    );
    expect(text()).toMatch(/failed after \d+ s\n$/);
    expect(existsSync(join(folder, 'node_modules/.cache/landlord-setup.json'))).toBe(false);
  });
});

describe('setup: each failure has a sentence that says what to do', () => {
  it.each([
    ['npm error code EAI_AGAIN', /network/],
    ['npm error code SELF_SIGNED_CERT_IN_CHAIN', /cafile/],
    ['npm error code ENOSPC', /disk is full/],
    ['npm error code EACCES', /not writable/],
    ['npm error code EBADENGINE', /engine-strict/],
    ['npm error code EUSAGE', /do not agree/],
    ['spawn npm ENOENT', /npm itself is missing/],
    ['something new', /Run `npm ci`/],
  ])('%s', (output, words) => {
    expect(explainInstallFailure(output)).toMatch(words);
  });

  it('does not take the warnings about newer Nodes for the failure', () => {
    const output = 'npm warn EBADENGINE Unsupported engine {\nnpm error code ECONNREFUSED\n';
    expect(explainInstallFailure(output)).toMatch(/network/);
    expect(lastLines(output, 5)).toBe('npm error code ECONNREFUSED');
  });

  it('shows what an error says, and not where in the code it was thrown', () => {
    const output = [
      'npm error code ECONNREFUSED',
      'npm error FetchError: request failed, reason: connect ECONNREFUSED 192.0.2.1:443',
      'npm error     at ClientRequest.<anonymous> (/usr/lib/x.js:130:14) {',
      "npm error   code: 'ECONNREFUSED',",
      "npm error   errno: 'ECONNREFUSED',",
      'npm error }',
      'npm error',
      'npm error A complete log of this run can be found in: /tmp/x.log',
    ].join('\n');
    expect(lastLines(output, 5).split('\n')).toEqual(output.split('\n').slice(0, 2));
  });

  it('refuses a Node that can not run it, by name', () => {
    expect(() => checkVersions('18.19.0')).toThrow(SetupError);
    expect(() => checkVersions('18.19.0')).toThrow(/18\.19\.0/);
    expect(() => checkVersions('20.20.2')).not.toThrow();
    expect(() => checkVersions('26.1.0')).not.toThrow();
  });

  it('notices when npm did not unpack Node 24, and remembers when all is well', async () => {
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
    mkdirSync(join(folder, 'node_modules/.cache'), { recursive: true });
    const { steps } = recorder();
    await expect(verifyPackages(folder, steps)).rejects.toThrow(/ignore-scripts/);
    const node = (body: string): void => {
      writeFileSync(join(folder, 'node_modules/.bin/node'), `#!/bin/sh\n${body}\n`);
      chmodSync(join(folder, 'node_modules/.bin/node'), 0o755);
    };
    node('echo v20.1.0');
    await expect(verifyPackages(folder, steps)).rejects.toThrow(/v20\.1\.0/);
    node(`[ "$1" = --version ] && echo v24.0.0 && exit 0; echo 'no koffi here'; exit 1`);
    await expect(verifyPackages(folder, steps)).rejects.toThrow(/no koffi here[\s\S]*rebuild koffi/);
    node('echo v24.0.0');
    await verifyPackages(folder, steps);
    node('exit 1');
    await verifyPackages(folder, steps);
  });

  it('a program that is not there ends with code 127, not with a throw', async () => {
    expect(await runProgram(join(folder, 'none'), [])).toMatchObject({ code: 127 });
  });
});

describe('setup: the rest', () => {
  it('links the command once, and mends a wrong link', () => {
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
    const link = join(folder, 'node_modules/.bin/landlord');
    linkCommand(folder);
    expect(existsSync(link)).toBe(false);
    mkdirSync(join(folder, 'build'));
    writeFileSync(join(folder, 'build/landlord'), '');
    writeFileSync(link, 'something else');
    linkCommand(folder);
    linkCommand(folder);
    expect(readlinkSync(link)).toBe('../../build/landlord');
    expect(existsSync(link)).toBe(true);
  });

  it('sees a changed, a renamed and a new source of the page', () => {
    mkdirSync(join(folder, 'renderer/view'), { recursive: true });
    writeFileSync(join(folder, 'renderer/view/a.ts'), '1');
    writeFileSync(join(folder, 'lock'), 'x');
    const hash = (): string => hashSources(folder, ['renderer', 'lock', 'absent']);
    const seen = new Set([hash(), hash()]);
    expect(seen.size).toBe(1);
    writeFileSync(join(folder, 'renderer/view/a.ts'), '2');
    seen.add(hash());
    writeFileSync(join(folder, 'renderer/view/b.ts'), '');
    seen.add(hash());
    writeFileSync(join(folder, 'lock'), 'y');
    seen.add(hash());
    expect(seen.size).toBe(4);
  });

  it('finds the browser a person names, and takes no other in its place', () => {
    program('chromium', 'exit 0');
    const bin = join(folder, 'bin');
    expect(findChromium({ PATH: bin })).toBe(join(bin, 'chromium'));
    expect(findChromium({ PATH: bin, LANDLORD_CHROMIUM: join(bin, 'none') })).toBeNull();
    expect(findChromium({ PATH: '', LANDLORD_CHROMIUM: join(bin, 'chromium') })).toBe(join(bin, 'chromium'));
  });
});

describe('compiling ahead', () => {
  const root = resolve(import.meta.dirname, '../..');
  const launcher = readFileSync(join(root, 'build/landlord'), 'utf8');

  it('uses the flags of the launcher, since V8 keeps compiled forms apart by them', () => {
    expect(launcherFlags(launcher)).toContain('--max-semi-space-size=2');
    expect(launcherFlags(launcher).every((flag) => flag.startsWith('--'))).toBe(true);
    expect(() => launcherFlags('exec node')).toThrow(SetupError);
  });

  it('leaves nothing of the program’s entry, store and sampler to be stripped of types at its first start', async () => {
    const cache = join(folder, 'cache');
    const saved = process.env.NODE_COMPILE_CACHE;
    process.env.NODE_COMPILE_CACHE = cache;
    const stampFile = join(root, 'node_modules/.cache/landlord-compiled');
    const stamp = existsSync(stampFile) ? readFileSync(stampFile) : null;
    const { steps, text } = recorder();
    try {
      await ensureCompiled(root, steps);
      await ensureCompiled(root, steps);
    } finally {
      if (stamp === null) rmSync(stampFile, { force: true });
      else writeFileSync(stampFile, stamp);
      if (saved === undefined) delete process.env.NODE_COMPILE_CACHE;
      else process.env.NODE_COMPILE_CACHE = saved;
    }
    expect(text().match(/Compiling the program/g)).toHaveLength(1);
    const { output } = await runProgram(join(root, 'build/landlord'), ['--version'], {
      env: { ...process.env, NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
    });
    expect(output).toMatch(/StrippedTypeScript file:.*electron\/cli\.ts/);
    expect(output).not.toMatch(/saving transpilation cache/);
    const store = await runProgram(
      join(root, 'node_modules/.bin/node'),
      [...launcherFlags(launcher), join(root, 'electron/core/devices/sampler-child.ts')],
      { env: { ...process.env, NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' } },
    );
    expect(store.output).toMatch(/StrippedTypeScript file:.*sampler-child\.ts/);
    expect(store.output).not.toMatch(/saving transpilation cache/);
  });
});
