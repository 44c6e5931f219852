import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { extractAll, listPackage } from '@electron/asar';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engineFolders, enginePackages } from '../../build/package/engine-packages.ts';
import type { Target } from '../../build/package/native.ts';
import { namedPrograms } from '../../build/package/own-programs.ts';
import { UNPACKED_DIR } from '../../build/package/pack.ts';
import { listFolder, ownBytes, type PackedFile, sizeReport } from '../../build/package/sizes.ts';
import { AUTOSTART_FILE } from '../../electron/shell/autostart.ts';
import { TALKER_SHAPE } from '../support/engine.ts';
import { gguf } from '../support/gguf.ts';
import { layerFiles } from '../support/source-files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** The package, made once without Electron's runtime, far from any node_modules of ours. */
let folder = '';
let unpacked = '';
let files: readonly PackedFile[] = [];
const paths = (): readonly string[] => files.map(({ path }) => path);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'landlord package '));
  const packed = await run(
    join(root, 'node_modules/node/bin/node'),
    [join(root, 'build/package/pack.ts'), '--target', 'dir', '--stand-in', '--out', folder],
    { cwd: root, maxBuffer: 16 * 1024 * 1024 },
  );
  unpacked = join(folder, UNPACKED_DIR);
  files = listFolder(unpacked);
  // Nothing may be fetched on the way.
  expect(packed.stdout + packed.stderr).not.toMatch(/download/i);
  process.stdout.write(`\nThe package, by size:\n${sizeReport(unpacked)}\n`);
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function hostTarget(): Target {
  const { platform, arch } = process;
  if (platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64')) throw new Error('This packs for Linux.');
  return { platform, arch };
}
const engineNames = (): readonly string[] => enginePackages(hostTarget());

/** A bare environment: the package must not need ours. */
function bareEnv(): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
    XDG_CACHE_HOME: join(folder, 'cache'),
    VRAM_LANDLORD_GATE_DIR: join(folder, 'gates'),
  };
}
/** Command lines of this moment that name a folder. */
function running(place: string): readonly string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const line = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '';
      return line.includes(place) ? [line.replaceAll('\0', ' ')] : [];
    } catch {
      return [];
    }
  });
}

const landlord = (...args: readonly string[]) =>
  run(join(unpacked, 'resources/bin/landlord'), args, { env: bareEnv(), cwd: folder });

describe('package: what is in it', () => {
  it('holds the app, the page, Node and the command, and what Node runs beside the archive', () => {
    expect(paths()).toEqual(
      expect.arrayContaining([
        'vram-landlord',
        'resources/app.asar',
        'resources/bin/landlord',
        'resources/node/bin/node',
        'resources/app.asar.unpacked/package.json',
        'resources/app.asar.unpacked/LICENSES.txt',
        'resources/app.asar.unpacked/out/node/cli.js',
        'resources/app.asar.unpacked/out/node/sampler-child.js',
        'resources/app.asar.unpacked/out/node/reaper-child.js',
        'resources/app.asar.unpacked/out/node/config-reader-child.js',
        'resources/app.asar.unpacked/out/node/store-worker.js',
        'resources/app.asar.unpacked/out/node/engine-child.js',
        'resources/app.asar.unpacked/out/node/keeper-child.js',
        'resources/app.asar.unpacked/out/renderer/index.html',
      ]),
    );
    for (const program of ['vram-landlord', 'resources/bin/landlord', 'resources/node/bin/node'])
      expect(statSync(join(unpacked, program)).mode & 0o111, program).toBe(0o111);
  });

  it('holds every program that a source starts, unpacked', () => {
    const named = layerFiles(join(root, 'electron')).flatMap((file) =>
      namedPrograms(readFileSync(file, 'utf8')),
    );
    expect(named.length).toBeGreaterThan(8);
    for (const program of named)
      expect(paths()).toContain(`resources/app.asar.unpacked/out/node/${basename(program)}.js`);
  });

  it('holds the native binaries of its target unpacked, and no other: the engine’s for the CPU and Vulkan', () => {
    const { platform, arch } = process;
    const at = 'resources/app.asar.unpacked/node_modules';
    const found = paths().filter((path) => path.endsWith('.node'));
    expect(found.toSorted()).toEqual(
      [
        `${at}/@koromix/koffi-${platform}-${arch}/${platform}_${arch}/koffi.node`,
        ...engineNames().map((name) => `${at}/${name}/bins/${name.split('/')[1]}/llama-addon.node`),
      ].toSorted(),
    );
  });

  it('holds what the CPU and Vulkan have in common once', () => {
    const seen = new Map<string, string>();
    for (const path of paths().filter((name) => name.includes('/@node-llama-cpp/') && name.endsWith('.so'))) {
      const file = join(unpacked, path);
      if (lstatSync(file).isSymbolicLink()) expect(existsSync(realpathSync(file)), path).toBe(true);
      else {
        const hash = createHash('sha256').update(readFileSync(file)).digest('hex');
        expect(seen.get(hash), path).toBe(undefined);
        seen.set(hash, path);
      }
    }
    expect(seen.size).toBeGreaterThan(0);
  });

  it('holds no dev dependency, source, test or source map, and nothing of Electron’s own demonstration', () => {
    const inArchive = listPackage(join(unpacked, 'resources/app.asar'), { isPack: false });
    for (const path of [...paths(), ...inArchive]) {
      expect(path, path).not.toMatch(/\.(map|ts|tsx|mts|cts|cc|hh|md|tsbuildinfo)$/);
      expect(path, path).not.toMatch(/(^|\/)(tests?|__tests__|fixtures|benchmarks?|docs?|examples?)\//);
      expect(path, path).not.toContain('default_app');
    }
    const packages = new Set(
      paths().flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
    );
    // What the engine needs beside itself, as its own package.json and those of its needs have it.
    const engine = new Set(
      engineFolders(root, hostTarget()).flatMap(
        (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
      ),
    );
    expect([...packages].filter((name) => !engine.has(name)).toSorted()).toEqual([
      `@koromix/koffi-${process.platform}-${process.arch}`,
      'koffi',
    ]);
    for (const name of ['electron', 'vitest', 'typescript', 'vite', 'playwright-core', '@biomejs/biome'])
      expect(packages.has(name), name).toBe(false);
  });

  it('names no source map, and carries no path of the machine it was made on', () => {
    for (const path of paths().filter((name) => /\.(js|cjs|html|json)$/.test(name))) {
      const text = readFileSync(join(unpacked, path), 'utf8');
      expect(text, path).not.toMatch(/\/\/[#@] sourceMappingURL=/);
      expect(text.includes(root), path).toBe(false);
    }
  });

  it('has only the main process and the preload in the archive for Electron', () => {
    const inArchive = listPackage(join(unpacked, 'resources/app.asar'), { isPack: true })
      .filter((line) => line.startsWith('pack ') && /\.[a-z]+$/.test(line))
      .map((line) => line.replace(/^pack\s*:\s*/, ''));
    expect(inArchive).toContain('/out/main/main.js');
    expect(inArchive).toContain('/out/preload.cjs');
    for (const path of inArchive)
      expect(path).toMatch(/^\/out\/(main\/[\w-]+\.js|preload\.cjs|icons\/(tray|app)\/.+\.png)$/);
  });

  it('is the same app to the desktop as its autostart entry', () => {
    const facts = JSON.parse(
      readFileSync(join(unpacked, 'resources/app.asar.unpacked/package.json'), 'utf8'),
    );
    expect(facts).toMatchObject({ name: 'vram-landlord', productName: 'VRAM Landlord', type: 'module' });
    expect(facts.desktopName).toBe(AUTOSTART_FILE);
    expect(facts.devDependencies).toBe(undefined);
  });

  it('tells the licence of everything that is bundled', () => {
    const text = readFileSync(join(unpacked, 'resources/app.asar.unpacked/LICENSES.txt'), 'utf8');
    for (const name of [
      'fastify',
      'zod',
      'yaml',
      'react-dom',
      'zustand',
      '@huggingface/gguf',
      'node-llama-cpp',
    ])
      expect(text, name).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
    expect(text).not.toContain('(unknown)');
    expect(text).toMatch(/^Node\.js 24\./m);
  });

  it('is under 250 MB without Electron’s runtime', () => {
    expect(ownBytes(files)).toBeLessThan(250_000_000);
    expect(ownBytes(files)).toBeGreaterThan(50_000_000);
  });

  it('has the fuses set: it does not run as Node, takes no NODE_OPTIONS or --inspect, and loads its archive alone', () => {
    const program = readFileSync(join(unpacked, 'vram-landlord'));
    const at = program.indexOf('dL7pKGdnNz796PbbjQWNKmHXBZaB9tsX');
    expect(at).toBeGreaterThan(0);
    // RunAsNode, CookieEncryption, NodeOptions, NodeCliInspect, AsarIntegrity, OnlyLoadAppFromAsar, V8Snapshot, FileProtocol.
    expect(program.subarray(at + 34, at + 42).toString()).toBe('01001100');
  });
});

describe('package: what it does', () => {
  it('serves under its own Node, from a path with a space in it and through a link', async () => {
    const place = mkdtempSync(join(folder, 'served-'));
    const link = join(place, 'linked');
    symlinkSync(join(unpacked, 'resources/bin/landlord'), link);
    const stateDir = join(place, 'state');
    const served = spawn(link, ['serve', '--port', '0', '--state-dir', stateDir], {
      env: bareEnv(),
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [served.stdout, served.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    const ended = new Promise<number | null>((resolve) => served.once('close', resolve));
    try {
      while (!/http:\/\/127\.0\.0\.1:\d+/.test(said) && served.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 20));
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? said;
      expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({
        ok: true,
        service: 'vram-landlord',
      });
      const key = /\?key=\S+/.exec(said)?.[0] ?? '';
      const opened = await fetch(`${url}/${key}`, { redirect: 'manual' });
      const page = await fetch(url, {
        headers: { cookie: opened.headers.get('set-cookie')?.split(';')[0] ?? '' },
      });
      expect(await page.text()).toContain('<div id="page">');

      let devices: readonly unknown[] = [];
      while (devices.length === 0) {
        const { stdout } = await landlord('status', '--json', '--state-dir', stateDir);
        devices = JSON.parse(stdout).devices;
      }
      const { stdout: events } = await landlord('events', '--json', '--state-dir', stateDir);
      expect(events).toContain('"started"');
      const { stdout: status } = await landlord('status', '--state-dir', stateDir);
      expect(status).toContain('VRAM Landlord');
    } finally {
      served.kill('SIGTERM');
    }
    expect(await ended).toBe(0);
  }, 60_000);

  it('takes a lane through the native binary, and becomes the command', async () => {
    const { stdout } = await landlord(
      'turn',
      '--backend',
      'http://127.0.0.1:1',
      '--',
      'sh',
      '-c',
      'echo "$0 ran"',
    );
    expect(stdout).toBe('sh ran\n');
    expect(listFolder(join(folder, 'gates')).map(({ path }) => path)).toContain('127.0.0.1_1.lock');
  });

  it('loads the embedded engine from where it lies, without building or fetching anything', async () => {
    const program = join(unpacked, 'resources/app.asar.unpacked/out/node/engine-check.js');
    writeFileSync(
      program,
      `import { getLlama } from 'node-llama-cpp';
      const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, maxThreads: 2 });
      console.log(llama.buildType, llama.supportsMmap);
      await llama.dispose();`,
    );
    const { stdout } = await run(join(unpacked, 'resources/node/bin/node'), [program], {
      env: bareEnv(),
      cwd: folder,
    });
    rmSync(program);
    expect(stdout).toBe('prebuilt true\n');
  }, 60_000);

  it('offers a service that starts its own command', async () => {
    const { stdout } = await landlord('service', 'install', '--dry-run');
    expect(stdout).toContain(`ExecStart="${join(unpacked, 'resources/bin/landlord')}" serve\n`);
  });

  it('starts its main process, hosts a runtime and an engine there, and ends what it started', async () => {
    // Plain Node reads no archive: its files lie in a folder of the same name, which the code can not tell.
    const place = mkdtempSync(join(folder, 'main-'));
    const resources = join(place, 'resources');
    mkdirSync(resources, { recursive: true });
    extractAll(join(unpacked, 'resources/app.asar'), join(resources, 'app.asar'));
    // What is unpacked has only its name in the archive; plain Node would find nothing there.
    rmSync(join(resources, 'app.asar/out/node'), { recursive: true });
    cpSync(join(unpacked, 'resources/app.asar.unpacked'), join(resources, 'app.asar.unpacked'), {
      recursive: true,
    });
    symlinkSync(join(unpacked, 'resources/node'), join(resources, 'node'));
    const electron = join(place, 'node_modules', 'electron');
    mkdirSync(electron, { recursive: true });
    const standIn = readFileSync(join(root, 'test/package/stand-in-electron.ts'), 'utf8');
    writeFileSync(join(electron, 'index.mjs'), stripTypeScriptTypes(standIn));
    writeFileSync(join(electron, 'package.json'), '{"name":"electron","exports":"./index.mjs"}');

    const config = join(place, 'config.yaml');
    writeFileSync(
      config,
      'backends: [{ name: own, kind: llama.cpp, url: "http://127.0.0.1:1", command: [sleep, "600"] }]\n',
    );
    // Another program than the package's Node, as Electron is.
    const { stdout } = await run(
      join(root, 'node_modules/node/bin/node'),
      [
        join(resources, 'app.asar/out/main/main.js'),
        ...['--port', '0', '--state-dir', join(place, 'state'), '--config', config],
      ],
      { env: { ...bareEnv(), LANDLORD_TEST_MODEL: await gguf(TALKER_SHAPE) }, cwd: folder },
    );
    const { events, programs, server, ...saw } = JSON.parse(stdout);
    expect(saw).toEqual({
      url: 'app://landlord/',
      pageStatus: 200,
      pageIsOurs: true,
      preloadThere: true,
      agent: ['OK invoke=DECODE agent_id=smol'],
      devices: true,
      link: 'own',
    });
    const node = realpathSync(join(resources, 'node/bin/node'));
    expect(programs).toMatchObject({
      'sampler-child.js': node,
      'engine-child.js': node,
      'keeper-child.js': node,
    });
    expect(new Set(Object.values(programs))).toEqual(new Set([node]));
    expect(server).toBeTypeOf('number');
    expect(existsSync(`/proc/${server}`)).toBe(false);
    expect(running(place)).toEqual([]);
    expect(events).toMatchObject({ ok: true });
    expect(events.value.map((event: { readonly kind: string }) => event.kind)).toContain('started');
  }, 60_000);
});
