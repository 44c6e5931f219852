import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

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
}

export function chooseHost({ env, platform, uid, electronPath }: Surroundings): Host {
  if (electronPath === null) {
    return {
      kind: 'serve',
      why: "Electron's runtime is not there (`npx install-electron` fetches it), so this runs without the tray.",
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
