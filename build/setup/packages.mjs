/** Installs the packages when they are missing or stale, and proves that they work. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { lastLines, runProgram, SetupError } from './steps.mjs';

const OLDEST_NODE_MAJOR = 20;
const OUR_NODE_MAJOR = 24;

/**
 * The machine's own Node only has to run npm; everything else runs on the Node of the packages.
 *
 * @param {string} nodeVersion
 */
export function checkVersions(nodeVersion) {
  const major = Number(nodeVersion.split('.')[0]);
  if (!(major >= OLDEST_NODE_MAJOR)) {
    throw new SetupError(
      `this machine's Node is ${nodeVersion}, and ${OLDEST_NODE_MAJOR} or newer is needed to install the packages. ` +
        `Install a newer Node (Debian and Ubuntu: apt-get install nodejs npm) and run it again.`,
    );
  }
}

/**
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensurePackages(root, steps) {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const stampFile = join(root, 'node_modules/.cache/landlord-setup.json');
  const stamp = { lock: createHash('sha256').update(lock).digest('hex') };
  const why = staleReason(stamp.lock, readIfThere(stampFile), {
    lock,
    installed: readIfThere(join(root, 'node_modules/.package-lock.json')),
  });
  if (why !== null) {
    await steps.run(`Installing packages with npm (${why}; about a minute)`, () => install(root));
  }
  if (why !== null || readIfThere(stampFile) !== JSON.stringify(stamp)) {
    mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
    writeFileSync(stampFile, JSON.stringify(stamp));
  }
}

/**
 * Why the packages must be installed anew; null when they need not be. Where no stamp tells, what
 * npm itself wrote about the installed packages does.
 *
 * @param {string} lockHash
 * @param {string | null} stampText
 * @param {{ lock: string, installed: string | null }} files
 * @returns {string | null}
 */
export function staleReason(lockHash, stampText, files) {
  if (files.installed === null) return 'none yet';
  if (stampText !== null) {
    return stampText === JSON.stringify({ lock: lockHash }) ? null : 'package-lock.json has changed';
  }
  return matchesLock(files.lock, files.installed) ? null : 'not the locked versions';
}

/**
 * Whether npm's own list of what lies in node_modules is what the lock asks for. Packages for other
 * systems are optional and may be absent.
 *
 * @param {string} lockText
 * @param {string} installedText
 */
export function matchesLock(lockText, installedText) {
  try {
    const wanted = Object.entries(JSON.parse(lockText).packages);
    const have = JSON.parse(installedText).packages;
    return wanted.every(([path, entry]) => {
      if (path === '') return true;
      const found = have[path];
      return found === undefined ? entry.optional === true : found.version === entry.version;
    });
  } catch {
    return false;
  }
}

/** @param {string} root */
async function install(root) {
  // npm removes node_modules first: it must not run on the Node that lies in there.
  const path = pathWithoutPackages(process.env.PATH ?? '');
  const result = await runProgram('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=warn'], {
    cwd: root,
    env: { ...process.env, PATH: path, NODE: undefined, npm_node_execpath: undefined },
  });
  if (result.code !== 0) {
    throw new SetupError(
      `npm could not install the packages. Its last lines:\n\n${lastLines(result.output, 12)}\n\n${explainInstallFailure(result.output)}`,
    );
  }
}

/**
 * PATH without the folders of installed packages.
 *
 * @param {string} path
 */
export function pathWithoutPackages(path) {
  return path
    .split(delimiter)
    .filter((folder) => !folder.split('/').includes('node_modules'))
    .join(delimiter);
}

/**
 * One sentence on what to do about npm's failure, from the error codes it prints.
 *
 * @param {string} output
 */
export function explainInstallFailure(output) {
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/.test(output)) {
    return 'The package registry could not be reached: check the network (and a proxy, if there is one), then run it again.';
  }
  if (/UNABLE_TO_VERIFY|SELF_SIGNED_CERT|CERT_/.test(output)) {
    return "The registry's certificate was not accepted: if a proxy re-signs traffic here, give its certificate to npm as `cafile`.";
  }
  if (/ENOSPC/.test(output)) return 'The disk is full: free about 1 GB and run it again.';
  if (/EACCES|EPERM/.test(output)) {
    return 'This folder is not writable for you: run it as the user who owns it, or clone the project anew.';
  }
  if (/EBADENGINE/.test(output) && /npm (error|ERR!) code EBADENGINE/.test(output)) {
    return "npm is set to refuse packages that want a newer Node: turn `engine-strict` off, as they run on the project's own Node 24.";
  }
  if (/EUSAGE|can only install packages when your package.json/.test(output)) {
    return 'package.json and package-lock.json do not agree: run `npm install` once and look at the difference.';
  }
  if (/spawn npm ENOENT/.test(output)) {
    return 'npm itself is missing: install it (Debian and Ubuntu: apt-get install npm) and run it again.';
  }
  return 'Run `npm ci` in this folder to see all that npm says.';
}

/**
 * npm can install without running a package's own install step (`ignore-scripts`), and then Node 24
 * is missing though all looks well.
 *
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function verifyPackages(root, steps) {
  const marker = join(root, 'node_modules/.cache/landlord-verified');
  if (existsSync(marker)) return;
  await steps.run('Checking Node 24 and the native parts', async () => {
    const node = join(root, 'node_modules/.bin/node');
    const version = await runProgram(node, ['--version']);
    if (version.code !== 0 || !version.output.startsWith(`v${OUR_NODE_MAJOR}.`)) {
      throw new SetupError(
        `node_modules/.bin/node should be Node ${OUR_NODE_MAJOR} and answers "${lastLines(version.output, 1)}". ` +
          'npm probably did not run the install step of its package: turn `ignore-scripts` off and run ' +
          '`npm rebuild node koffi`.',
      );
    }
    const koffi = await runProgram(node, ['-e', "require('koffi').load(null)"], { cwd: root });
    if (koffi.code !== 0) {
      throw new SetupError(
        `the native package koffi does not load here:\n\n${lastLines(koffi.output, 6)}\n\n` +
          'Run `npm rebuild koffi`; on a system other than glibc Linux it may need a C++ compiler and cmake.',
      );
    }
  });
  writeFileSync(marker, '');
}

/**
 * @param {string} file
 * @returns {string | null}
 */
function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
