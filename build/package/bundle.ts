/**
 * The app as it is packed and as Electron runs it from sources: plain JavaScript, without a build step
 * left to do at run time.
 *
 *   out/app/package.json        names and version; nothing to install
 *          /out/main/           Electron's main process, the core in it
 *          /out/node/           the command line, `serve`, and what is started as a process of its own
 *          /out/preload.cjs     the sandbox takes one CommonJS file
 *          /out/renderer/       the page
 *          /out/icons/          the tray's pictures, and the app's own
 *          /node_modules/koffi  with its binary, for one target
 *          /LICENSES.txt        of what is bundled
 *
 * The folders lie as deep as the sources they are made from, so that `../../package.json` and
 * `../../out/renderer` mean the same in both.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type InlineConfig } from 'vite';
import { APP_ID } from '../../shared/app-id.ts';
import { PRODUCT_NAME } from './config.ts';
import { ENGINE, engineFolders } from './engine-packages.ts';
import { collectPackages, licenceText } from './licences.ts';
import { copyNative, nativeVersions, type Target } from './native.ts';
import { ownPrograms } from './own-programs.ts';

/** What is not bundled: Electron is there, and the native ones find their binaries by where they lie. */
const EXTERNAL = ['electron', 'koffi', ENGINE];

/** Node 24 in the package, and the same major version in Electron. */
const TARGET = 'node24';

function common(root: string, outDir: string): InlineConfig {
  return {
    configFile: false,
    root,
    logLevel: 'warn',
    cacheDir: join(root, 'node_modules/.cache/vite'),
    ssr: { noExternal: true, external: EXTERNAL, target: 'node' },
    build: { ssr: true, outDir, emptyOutDir: false, target: TARGET, minify: false, sourcemap: false },
  };
}

/** How the code of one side is built into `outDir`. */
export function nodeSide(root: string, side: 'node' | 'main', entry: string, outDir: string): InlineConfig {
  const config = common(root, outDir);
  return {
    ...config,
    plugins: [ownPrograms(side)],
    build: {
      ...config.build,
      rolldownOptions: {
        input: { [side === 'node' ? 'cli' : 'main']: join(root, entry) },
        output: { format: 'es', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
      },
    },
  };
}

function preloadSide(root: string, outDir: string): InlineConfig {
  const config = common(root, outDir);
  return {
    ...config,
    build: {
      ...config.build,
      // The sandbox's renderer, not Node.
      target: 'chrome140',
      rolldownOptions: {
        input: { preload: join(root, 'electron/preload.ts') },
        output: { format: 'cjs', entryFileNames: '[name].cjs', codeSplitting: false },
      },
    },
  };
}

/** Builds the preload alone into `outDir/preload.cjs`: all that a page needs beside the main process. */
export async function bundlePreload(root: string, outDir: string): Promise<string> {
  await build(preloadSide(root, outDir));
  return join(outDir, 'preload.cjs');
}

/** Builds the app into `appDir`, which is emptied first. The page must have been built. */
export async function bundleApp(root: string, appDir: string, target: Target): Promise<void> {
  const page = join(root, 'out/renderer');
  if (!existsSync(join(page, 'index.html'))) {
    throw new Error('The page is not built yet: `npm run build:renderer` builds it.');
  }
  rmSync(appDir, { recursive: true, force: true });
  const out = join(appDir, 'out');
  mkdirSync(out, { recursive: true });
  const packages = new Set<string>();
  const node = nodeSide(root, 'node', 'electron/cli.ts', join(out, 'node'));
  const main = nodeSide(root, 'main', 'electron/main.ts', join(out, 'main'));
  for (const config of [node, main, preloadSide(root, out)]) {
    await build({ ...config, plugins: [...(config.plugins ?? []), collectPackages(packages)] });
  }
  cpSync(page, join(out, 'renderer'), { recursive: true });
  for (const icons of ['icons/tray', 'icons/app/256x256.png']) {
    const from = join(root, 'out', icons);
    if (existsSync(from)) cpSync(from, join(out, icons), { recursive: true });
  }
  copyNative(root, appDir, target);
  for (const folder of engineFolders(root, target)) packages.add(folder);
  writeFileSync(join(appDir, 'package.json'), `${JSON.stringify(appFacts(root, appDir), null, 2)}\n`);
  const radix = readdirSync(join(root, 'node_modules/@radix-ui')).map((name) => `@radix-ui/${name}`);
  for (const name of ['react', 'react-dom', 'scheduler', 'zustand', 'uplot', ...radix]) {
    packages.add(join(root, 'node_modules', name));
  }
  writeFileSync(
    join(appDir, 'LICENSES.txt'),
    `${readFileSync(join(root, 'LICENSE'), 'utf8').trim()}\n\n${'-'.repeat(80)}\n\n${licenceText(packages)}${nodeNotice(root)}`,
  );
}

/** Its own text is long, and its package here does not have it. */
function nodeNotice(root: string): string {
  const facts: unknown = JSON.parse(readFileSync(join(root, 'node_modules/node/package.json'), 'utf8'));
  const version = typeof facts === 'object' && facts !== null ? String(Reflect.get(facts, 'version')) : '';
  const text = `https://github.com/nodejs/node/blob/v${version}/LICENSE`;
  return `\n${'-'.repeat(80)}\n\nNode.js ${version} (MIT, and others of its parts): ${text}\n`;
}

/** As much of the project's package.json as the app needs; `type` makes its files ES modules. */
function appFacts(root: string, appDir: string): Readonly<Record<string, unknown>> {
  const facts: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const field = (name: string): unknown =>
    typeof facts === 'object' && facts !== null ? Reflect.get(facts, name) : undefined;
  return {
    name: field('name'),
    productName: PRODUCT_NAME,
    version: field('version'),
    description: field('description'),
    author: 'VRAM Landlord <vram-landlord@localhost>',
    license: field('license'),
    private: true,
    type: 'module',
    dependencies: nativeVersions(appDir),
    main: 'out/main/main.js',
    desktopName: `${APP_ID}.desktop`,
  };
}
