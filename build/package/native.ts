/** The one native package, for one target alone: as it comes it carries sources, and every platform's binary is a package. */
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Of the package itself only what is loaded: its JavaScript, its facts and its licence. */
const KOFFI_FILES = [
  'package.json',
  'LICENSE.txt',
  'index.js',
  'index.cjs',
  'src/koffi/index.js',
  'src/koffi/index.cjs',
  'src/koffi/src/static.js',
  'src/koffi/src/static.cjs',
];

export interface Target {
  readonly platform: 'linux' | 'darwin' | 'win32';
  readonly arch: 'x64' | 'arm64';
}

/** Copies koffi and its binary into `<appDir>/node_modules`. Throws when the binary of the target is not installed. */
export function copyNative(root: string, appDir: string, target: Target): void {
  const modules = join(root, 'node_modules');
  const to = join(appDir, 'node_modules');
  for (const file of KOFFI_FILES) {
    mkdirSync(join(to, 'koffi', file, '..'), { recursive: true });
    cpSync(join(modules, 'koffi', file), join(to, 'koffi', file));
  }
  const name = `@koromix/koffi-${target.platform}-${target.arch}`;
  const binary = join(modules, name);
  if (!existsSync(binary)) {
    throw new Error(
      `${name} is not installed, so nothing can be packed for it: npm install --os ${target.platform} --cpu ${target.arch}`,
    );
  }
  cpSync(binary, join(to, name), { recursive: true, filter: (path) => isWanted(path, target) });
}

/** Electron and our Node are built for glibc. */
function isWanted(path: string, target: Target): boolean {
  if (path.endsWith('.md')) return false;
  return target.platform !== 'linux' || !path.includes('/musl_');
}

/** The packages of an app's folder that are to be packed with it, as package.json names them. */
export function nativeVersions(appDir: string): Readonly<Record<string, string>> {
  const facts: unknown = JSON.parse(readFileSync(join(appDir, 'node_modules/koffi/package.json'), 'utf8'));
  const version: unknown = typeof facts === 'object' && facts !== null ? Reflect.get(facts, 'version') : null;
  return typeof version === 'string' ? { koffi: version } : {};
}
