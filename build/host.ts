import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Where `npm start` runs the runtime.
 *
 *   electron  the tray app: its runtime is unpacked, and there is a display to show it on
 *   serve     plain Node, the page in a browser; `why` says in one line what the other wanted
 */
export type Host =
  | { readonly kind: 'electron'; readonly path: string }
  | { readonly kind: 'serve'; readonly why: string };

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Effective user id; null where there is none. */
  readonly uid: number | null;
  /** Path of Electron's program; null when it is not unpacked. */
  readonly electronPath: string | null;
  /** As its runtime says, `45.5.0`; null: it does not say. */
  readonly electronVersion: string | null;
}

/** On Linux 43.3, 43.4 and 44.0 made a tray that nobody saw, and said nothing of it (electron#54181). */
const LEAST_ELECTRON: readonly [major: number, minor: number] = [44, 1];

/** What can't be read is taken for new enough: the app looks for its icon itself. */
export function isTooOld(version: string | null): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(version ?? '') ?? [];
  if (major === undefined) return false;
  const [leastMajor, leastMinor] = LEAST_ELECTRON;
  return Number(major) < leastMajor || (Number(major) === leastMajor && Number(minor) < leastMinor);
}

export function chooseHost({ env, platform, uid, electronPath, electronVersion }: Surroundings): Host {
  if (electronPath === null) {
    return {
      kind: 'serve',
      why: "Electron's runtime is not there (`npx install-electron` fetches it), so this runs without the tray.",
    };
  }
  if (isTooOld(electronVersion)) {
    return {
      kind: 'serve',
      why: `Electron ${electronVersion} may show no tray icon: 44.1 or later is needed (\`npx install-electron\` fetches it), so this runs without the tray.`,
    };
  }
  const needsDisplay = platform !== 'darwin' && platform !== 'win32';
  if (needsDisplay && !env.DISPLAY && !env.WAYLAND_DISPLAY) {
    return {
      kind: 'serve',
      why: 'There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set), so this runs without the tray.',
    };
  }
  // Chromium refuses to run as root unless its sandbox is off, and that stays on.
  if (platform === 'linux' && uid === 0) {
    return {
      kind: 'serve',
      why: 'Electron keeps its sandbox only for ordinary users and you are root, so this runs without the tray.',
    };
  }
  return { kind: 'electron', path: electronPath };
}

/**
 * Electron's program, as its package records it in `path.txt`. Its own `require('electron')` would
 * download a missing runtime, and a start must not.
 */
export function findElectron(
  root: string,
  env: Readonly<Record<string, string | undefined>> = {},
): string | null {
  const folder = join(root, 'node_modules/electron');
  let program: string;
  try {
    program = readFileSync(join(folder, 'path.txt'), 'utf8').trim();
  } catch {
    if (env.ELECTRON_OVERRIDE_DIST_PATH === undefined) return null;
    program = 'electron';
  }
  const path = join(env.ELECTRON_OVERRIDE_DIST_PATH ?? join(folder, 'dist'), program);
  return program !== '' && existsSync(path) ? path : null;
}

/** What the runtime of a program says it is; null where it does not. */
export function electronVersion(path: string | null): string | null {
  if (path === null) return null;
  // On macOS the program lies deeper, in its bundle.
  for (let folder = dirname(path), up = 0; up < 4; folder = dirname(folder), up += 1) {
    try {
      return readFileSync(join(folder, 'version'), 'utf8').trim().replace(/^v/, '');
    } catch {
      // Not here.
    }
  }
  return null;
}
