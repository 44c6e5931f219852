/** The browser that the page's tests drive: the distribution's Chromium, installed when that is ours to do. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { lastLines, runProgram, SetupError } from './steps.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** @param {import('./steps.mjs').Steps} steps */
export async function ensureChromium(steps) {
  if (findChromium(process.env) !== null) return;
  const how =
    'The tests of the page need Chromium: install it (Debian: apt-get install chromium), or set LANDLORD_CHROMIUM to the path of a Chromium or Chrome.';
  if (process.getuid?.() !== 0 || findInPath('apt-get', process.env.PATH ?? '') === null) {
    throw new SetupError(how);
  }
  await steps.run('Installing Chromium for the tests of the page (apt-get)', async () => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await runProgram('apt-get', ['update', '-qq'], { env });
    const result = await runProgram(
      'apt-get',
      ['install', '-y', '-qq', '--no-install-recommends', 'chromium'],
      {
        env,
      },
    );
    if (result.code !== 0 || findChromium(process.env) === null) {
      throw new SetupError(`apt-get did not install Chromium:\n\n${lastLines(result.output, 8)}\n\n${how}`);
    }
  });
}

/**
 * Path of a Chromium to drive; null when there is none.
 *
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {string | null}
 */
export function findChromium(env) {
  const set = env.LANDLORD_CHROMIUM;
  if (set !== undefined && set !== '') return isProgram(set) ? set : null;
  // A test's PATH may be bare; the distribution's own folder counts all the same.
  const path = `${env.PATH ?? ''}:/usr/bin`;
  for (const name of NAMES) {
    const found = findInPath(name, path);
    if (found !== null) return found;
  }
  return null;
}

/**
 * @param {string} name
 * @param {string} path
 * @returns {string | null}
 */
function findInPath(name, path) {
  for (const folder of path.split(':')) {
    if (folder !== '' && isProgram(join(folder, name))) return join(folder, name);
  }
  return null;
}

/** @param {string} file */
function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
