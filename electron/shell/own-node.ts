import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok, type Result } from '../../shared/errors.ts';

/**
 * The Node that runs what is not the app itself: it comes with the package, since Electron's own program
 * runs no scripts there (its RunAsNode fuse is off). From sources it is the project's.
 */
export function findNode(places: {
  /** The app's folder or archive. */
  readonly appPath: string;
  /** Where a package keeps what lies beside the archive. */
  readonly resourcesPath: string;
}): Result<string> {
  const candidates = [
    join(places.resourcesPath, 'node', 'bin', 'node'),
    join(places.resourcesPath, 'node', 'node.exe'),
    // `out/app` in the project.
    join(places.appPath, '..', '..', 'node_modules', 'node', 'bin', 'node'),
  ];
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return ok(found);
  return fail(
    'not_supported',
    `Node is missing from ${places.resourcesPath}: install VRAM Landlord again. It reads devices and servers with it.`,
  );
}
