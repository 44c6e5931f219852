/**
 * `node build/package/pack.ts [--target dir|deb|AppImage|cuda] [--electron-dist DIR | --stand-in] [--out DIR]`:
 * packs the app for this platform, and says what came of it by size. dmg and nsis are made on their own systems;
 * `cuda` packs the add-on for the embedded engine alone.
 *
 * `--stand-in` packs without Electron's runtime, for checks. deb and AppImage need tools that electron-builder
 * fetches once (fpm, and AppImage's own runtime); `dir` needs nothing from the network.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Arch, build, Platform } from 'electron-builder';
import { makeIcons } from '../make-icons.ts';
import { bundleApp } from './bundle.ts';
import { packConfig } from './config.ts';
import { packCudaAddon } from './cuda-addon.ts';
import { copyEngine } from './engine-packages.ts';
import type { Target } from './native.ts';
import { sizeReport } from './sizes.ts';
import { writeStandInElectron } from './stand-in-electron.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Packing {
  readonly target: string;
  /** null: electron-builder fetches the runtime. `stand-in`: none. */
  readonly electronDist: string | null;
  readonly outDir: string;
}

/** Where the unpacked app lies on Linux, in `outDir`. */
export const UNPACKED_DIR = 'linux-unpacked';

export async function pack({ target, electronDist, outDir }: Packing): Promise<void> {
  const platform = hostTarget();
  const work = mkdtempSync(join(tmpdir(), 'landlord-pack-'));
  try {
    const appDir = join(work, 'app');
    await bundleApp(root, appDir, platform);
    const engine = join(work, 'engine');
    copyEngine(root, engine, platform);
    const version = electronVersion();
    const standIn = join(work, 'electron');
    if (electronDist === 'stand-in') writeStandInElectron(standIn, version);
    const icons = join(root, 'out/icons/app');
    await makeIcons(join(root, 'out/icons'));
    await build({
      // Here and not the project's, whose packages are bundled already.
      projectDir: appDir,
      publish: 'never',
      config: packConfig({
        root,
        outDir,
        electronDist: electronDist === 'stand-in' ? standIn : electronDist,
        electronVersion: version,
        nodePath: join(root, 'node_modules/node/bin/node'),
        engineDir: engine,
        iconDir: icons,
      }),
      targets: Platform.current().createTarget([target], platform.arch === 'x64' ? Arch.x64 : Arch.arm64),
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Packages are made on what they are for: the Node and the native binary in them are this machine's. */
function hostTarget(): Target {
  const { platform, arch } = process;
  if (
    (platform === 'linux' || platform === 'darwin' || platform === 'win32') &&
    (arch === 'x64' || arch === 'arm64')
  )
    return { platform, arch };
  throw new Error(`There is no package for ${platform} ${arch}.`);
}

function electronVersion(): string {
  const facts: unknown = JSON.parse(readFileSync(join(root, 'node_modules/electron/package.json'), 'utf8'));
  const version: unknown = typeof facts === 'object' && facts !== null ? Reflect.get(facts, 'version') : null;
  if (typeof version !== 'string') throw new Error('Electron is not installed: `npm install` does it.');
  return version;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', default: process.platform === 'linux' ? 'deb' : 'dir' },
      'electron-dist': { type: 'string' },
      'stand-in': { type: 'boolean', default: false },
      out: { type: 'string', default: join(root, 'out/package') },
    },
    strict: true,
  });
  const dist = values['electron-dist'];
  const outDir = resolve(values.out);
  if (values.target === 'cuda') {
    const facts: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const version = typeof facts === 'object' && facts !== null ? String(Reflect.get(facts, 'version')) : '';
    const file = await packCudaAddon(root, outDir, hostTarget(), version);
    process.stdout.write(`${(statSync(file).size / 1_000_000).toFixed(1)} MB  ${file}\n`);
    process.exit(0);
  }
  await pack({
    target: values.target,
    electronDist: values['stand-in'] ? 'stand-in' : dist === undefined ? null : resolve(dist),
    outDir,
  });
  const unpacked = join(outDir, UNPACKED_DIR);
  if (existsSync(unpacked)) process.stdout.write(`${sizeReport(unpacked)}\n`);
}
