/** How the app is packed: https://www.electron.build/configuration. Everything that is packed lies in `appDir` already. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Configuration } from 'electron-builder';
import { APP_ID } from '../../shared/app-id.ts';

export const PRODUCT_NAME = 'VRAM Landlord';
/** Of the app itself; `landlord` is the command. */
export const EXECUTABLE = 'vram-landlord';

export interface PackOptions {
  readonly root: string;
  readonly outDir: string;
  /** A folder with Electron's runtime; null: electron-builder fetches it. */
  readonly electronDist: string | null;
  readonly electronVersion: string;
  /** The Node that is packed. */
  readonly nodePath: string;
  /** The embedded engine's packages, as they are to lie in a node_modules. */
  readonly engineDir: string;
  /** A folder of icons by size; null: Electron's own. */
  readonly iconDir: string | null;
}

/** What plain Node runs or reads, which knows no archive: all but the main process and the preload. */
export const UNPACKED: readonly string[] = [
  'package.json',
  'LICENSES.txt',
  'out/node/**',
  'out/renderer/**',
  'node_modules/**',
];

export function packConfig(options: PackOptions): Configuration {
  const here = join(options.root, 'build/package');
  return {
    appId: APP_ID,
    productName: PRODUCT_NAME,
    copyright: 'MIT',
    directories: { output: options.outDir, buildResources: here },
    electronVersion: options.electronVersion,
    ...(options.electronDist === null ? {} : { electronDist: options.electronDist }),
    // The page's languages are its own; Chromium's are for menus that this app does not have.
    electronLanguages: ['en-US'],
    files: ['**/*'],
    asar: true,
    asarUnpack: [...UNPACKED],
    extraResources: [
      { from: options.nodePath, to: options.nodePath.endsWith('.exe') ? 'node/node.exe' : 'node/bin/node' },
      { from: join(here, 'landlord'), to: 'bin/landlord' },
      { from: options.engineDir, to: 'app.asar.unpacked/node_modules' },
    ],
    // Electron's own demonstration has no place in a package; a given folder of the runtime still has it.
    afterExtract: ({ appOutDir }) => rm(join(appOutDir, 'resources/default_app.asar'), { force: true }),
    // What is native is built already, and for Node-API: it fits Node and Electron alike.
    npmRebuild: false,
    nodeGypRebuild: false,
    buildDependenciesFromSource: false,
    electronFuses: {
      runAsNode: false,
      enableCookieEncryption: true,
      enableNodeOptionsEnvironmentVariable: false,
      enableNodeCliInspectArguments: false,
      enableEmbeddedAsarIntegrityValidation: true,
      onlyLoadAppFromAsar: true,
      loadBrowserProcessSpecificV8Snapshot: false,
      grantFileProtocolExtraPrivileges: false,
    },
    publish: null,
    linux: {
      target: ['deb', 'AppImage'],
      executableName: EXECUTABLE,
      category: 'System',
      syncDesktopName: true,
      synopsis: 'Guards the GPU memory that models and the desktop share',
      maintainer: PRODUCT_NAME,
      ...(options.iconDir === null ? {} : { icon: options.iconDir }),
    },
    // The first target: its profile lets Chromium's sandbox work where user namespaces are kept from others.
    deb: {
      priority: 'optional',
      fpm: [`${join(here, 'landlord-deb')}=/usr/bin/landlord`],
    },
    mac: { target: ['dmg'], category: 'public.app-category.developer-tools' },
    win: { target: ['nsis'], executableName: EXECUTABLE },
    nsis: { oneClick: true, perMachine: false },
  };
}
