/** The app as Electron runs it from sources: built into out/app when it is missing or older than they are. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashSources } from '../setup/page.mjs';

const SOURCES = [
  'electron',
  'shared',
  'renderer',
  'build/package',
  'build/icons',
  'build/make-icons.ts',
  'package.json',
  'package-lock.json',
];

/** Resolves with the app's folder. Throws with a sentence when it can't be built. */
export async function ensureApp(root: string, say: (line: string) => void): Promise<string> {
  const appDir = join(root, 'out/app');
  const stampFile = join(root, 'out/app.stamp');
  const stamp = hashSources(root, SOURCES);
  const isThere = existsSync(join(appDir, 'out/main/main.js'));
  if (isThere && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return appDir;
  say('Building the app …');
  const { platform, arch } = process;
  if (
    (platform !== 'linux' && platform !== 'darwin' && platform !== 'win32') ||
    !(arch === 'x64' || arch === 'arm64')
  )
    throw new Error(
      `There is no desktop app for ${platform} ${arch}; \`npx landlord serve\` runs without it.`,
    );
  // Loaded only here: an app that is up to date starts without the bundler.
  const { makeIcons } = await import('../make-icons.ts');
  await makeIcons(join(root, 'out/icons'));
  const { bundleApp } = await import('./bundle.ts');
  await bundleApp(root, appDir, { platform, arch });
  writeFileSync(stampFile, stamp);
  return appDir;
}
