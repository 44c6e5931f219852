#!/usr/bin/env node
/**
 * Gets a real llama-server for the tests and the demo, from Debian's own packages, without root and
 * without installing anything: it is unpacked into node_modules/.cache/llama-server of this project.
 *
 * The packages come from suite `sid`, whose C library is newer than a stable release's, so they
 * bring their own: the server's copy is given that C library's loader as its interpreter (a wrapper
 * that calls the loader would not do, because the router starts its children by its own path).
 *
 * Plain Node 20 or newer, no dependencies. `node build/fetch-llama-server.mjs` fetches and says where.
 */
import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

export const defaultCacheDir = join(realPath(join(projectRoot, 'node_modules')), '.cache', 'llama-server');

/** Raised when the way it is unpacked changes, so that an older copy is fetched anew. */
const LAYOUT = 2;

const MACHINES = {
  x64: { triplet: 'x86_64-linux-gnu', loader: 'ld-linux-x86-64.so.2', arch: 'amd64' },
  arm64: { triplet: 'aarch64-linux-gnu', loader: 'ld-linux-aarch64.so.1', arch: 'arm64' },
};

/** Dependencies that a server on the loopback never opens: installers' tools and character tables. */
const NOT_NEEDED = /^(?:debconf|wget|gcc-.*-base|libc-gconv-modules-extra)$/;

/** Two copies of the project that share their packages by a link share the server too: each would make the other's anew. */
function realPath(folder) {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

/**
 * The Debian archives named in apt's sources, in both spellings, as [{ uri, options }].
 * Pure: takes the text of the files. `options` are the lines or the bracket that go with the address,
 * such as the key it is signed by.
 */
export function archivesOf(files) {
  const found = [];
  for (const { name, text } of files) {
    if (name.endsWith('.sources')) {
      for (const stanza of text.split(/\n[ \t]*\n/)) {
        const fields = stanzaFields(stanza);
        if (!(fields.types ?? '').split(/\s+/).includes('deb') || /^no$/i.test(fields.enabled ?? ''))
          continue;
        for (const uri of (fields.uris ?? '').split(/\s+/).filter(Boolean)) {
          found.push({ uri, suites: fields.suites ?? '', signedBy: fields['signed-by'] ?? null });
        }
      }
    } else if (name.endsWith('.list')) {
      for (const line of text.split('\n')) {
        const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)/.exec(line);
        if (match === null) continue;
        const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(match[1] ?? '');
        found.push({ uri: match[2], suites: match[3], signedBy: signedBy?.[1] ?? null });
      }
    }
  }
  // Security, backports of vendors and other archives share the format; the one that holds sid ends in /debian.
  return found.filter(
    (entry) =>
      (/\/debian\/?$/.test(entry.uri) || /debian\.list$/.test(entry.uri)) && !/security/.test(entry.suites),
  );
}

/** Fields of one deb822 stanza, keys in lower case; a continuation line is kept with its newline. */
function stanzaFields(stanza) {
  const fields = {};
  let key = null;
  for (const line of stanza.split('\n')) {
    if (line.startsWith('#')) continue;
    const match = /^([A-Za-z-]+):\s*(.*)$/.exec(line);
    if (match !== null) {
      key = match[1].toLowerCase();
      fields[key] = match[2];
    } else if (key !== null && /^\s/.test(line)) {
      fields[key] += `\n${line}`;
    }
  }
  return fields;
}

function readSources(aptDir = '/etc/apt') {
  const paths = [join(aptDir, 'sources.list')];
  try {
    for (const name of readdirSync(join(aptDir, 'sources.list.d')))
      paths.push(join(aptDir, 'sources.list.d', name));
  } catch {
    // No such folder: the one file is all there is.
  }
  return paths.flatMap((path) => {
    try {
      return [{ name: path, text: readFileSync(path, 'utf8') }];
    } catch {
      return [];
    }
  });
}

/**
 * A llama-server that can be started now, or null: the fetched one, else one on PATH that answers
 * `--version`. `env` is to be laid over the environment of the process that starts it.
 */
export function findLlamaServer({ cacheDir = defaultCacheDir, path = process.env.PATH ?? '' } = {}) {
  return findFetched(cacheDir) ?? findInstalled(path);
}

function findFetched(cacheDir) {
  let stamp;
  try {
    stamp = JSON.parse(readFileSync(join(cacheDir, 'stamp.json'), 'utf8'));
  } catch {
    return null;
  }
  // A copy that was moved still names its old loader: it has to be made anew.
  if (stamp.layout !== LAYOUT || stamp.cacheDir !== cacheDir || !isExecutable(stamp.command)) return null;
  return { command: stamp.command, env: stamp.env, version: stamp.version, origin: 'fetched' };
}

function findInstalled(path) {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const command = join(folder, 'llama-server');
    if (!isExecutable(command)) continue;
    const version = versionOf(command, {});
    if (version !== null) return { command, env: {}, version, origin: 'installed' };
  }
  return null;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The first `version: …` line it prints, or null when it does not run. */
function versionOf(command, env) {
  const probe = spawnSync(command, ['--version'], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 10_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (probe.status !== 0) return null;
  return /version:\s*(.+)/.exec(`${probe.stdout}\n${probe.stderr}`)?.[1]?.trim() ?? 'unknown';
}

/**
 * A llama-server that can be started: found, or fetched when `allowDownload`.
 * Throws an Error whose message says what is missing and what to do.
 */
export async function ensureLlamaServer({
  allowDownload = true,
  cacheDir = defaultCacheDir,
  onProgress = (line) => process.stderr.write(`llama-server: ${line}\n`),
} = {}) {
  const found = findLlamaServer({ cacheDir });
  if (found !== null) return found;
  if (!allowDownload) {
    throw new Error('No llama-server here. Run `node build/fetch-llama-server.mjs`, or put one on PATH.');
  }
  return await fetchLlamaServer(cacheDir, onProgress);
}

async function fetchLlamaServer(cacheDir, onProgress) {
  const machine = MACHINES[process.arch];
  if (process.platform !== 'linux' || machine === undefined) {
    throw new Error(
      `There is no Debian package of llama-server for ${process.platform} on ${process.arch}. Install llama.cpp and put llama-server on PATH.`,
    );
  }
  for (const tool of ['apt-get', 'dpkg-deb']) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status !== 0) {
      throw new Error(
        `${tool} is not here, so llama-server can't be fetched from Debian's packages. Install llama.cpp and put llama-server on PATH.`,
      );
    }
  }
  const [archive] = archivesOf(readSources());
  if (archive === undefined) {
    throw new Error(
      "No Debian archive is named in /etc/apt/sources.list or sources.list.d, so llama-server can't be fetched. Install llama.cpp and put llama-server on PATH.",
    );
  }
  // Made aside and moved into place whole: a run that is cut leaves nothing half-done, and two at once do no harm.
  const work = `${cacheDir}.${process.pid}`;
  await rm(work, { recursive: true, force: true });
  try {
    const apt = await privateApt(work, archive);
    onProgress('1/4 reading the package list of Debian sid');
    await apt(['update']);
    const packages = await closureOf(apt);
    onProgress(`2/4 fetching ${packages.length} packages`);
    const debs = join(work, 'debs');
    await mkdir(debs, { recursive: true });
    await apt(['download', ...packages], debs);
    onProgress('3/4 unpacking');
    const files = await readdir(debs);
    for (const deb of files) await run('dpkg-deb', ['-x', join(debs, deb), join(work, 'root')]);
    onProgress('4/4 giving it its own C library');
    await patchServer({ work, cacheDir, machine, apt });
    const stamp = stampOf(cacheDir, machine, work);
    await rm(join(work, 'apt'), { recursive: true, force: true });
    await rm(debs, { recursive: true, force: true });
    // Another run may have been faster, and its server may be at work by now: it stays.
    const other = findFetched(cacheDir);
    if (other !== null) return other;
    await rm(cacheDir, { recursive: true, force: true });
    await rename(work, cacheDir);
    const version = versionOf(stamp.command, stamp.env);
    if (version === null) {
      throw new Error(`The fetched llama-server does not run. Try ${stamp.command} --version to see why.`);
    }
    await writeFile(join(cacheDir, 'stamp.json'), `${JSON.stringify({ ...stamp, version }, null, 2)}\n`);
    onProgress(`ready: ${version}`);
    return { command: stamp.command, env: stamp.env, version, origin: 'fetched' };
  } catch (thrown) {
    const other = findFetched(cacheDir);
    if (other !== null) return other;
    throw thrown;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** apt-get with lists, cache and state of its own, so that neither root nor the machine's own state is touched. */
async function privateApt(work, archive) {
  const home = join(work, 'apt');
  await mkdir(join(home, 'lists', 'partial'), { recursive: true });
  await mkdir(join(home, 'archives', 'partial'), { recursive: true });
  await writeFile(join(home, 'status'), '');
  const signedBy = archive.signedBy ?? '/usr/share/keyrings/debian-archive-keyring.gpg';
  const lines = ['Types: deb', `URIs: ${archive.uri}`, 'Suites: sid', 'Components: main'];
  if (signedBy.includes('\n') || existsSync(signedBy)) lines.push(`Signed-By: ${signedBy}`);
  await writeFile(join(home, 'sid.sources'), `${lines.join('\n')}\n`);
  const options = [
    `Dir::Etc::sourcelist=${join(home, 'sid.sources')}`,
    'Dir::Etc::sourceparts=-',
    'Dir::Etc::preferences=/dev/null',
    'Dir::Etc::preferencesparts=-',
    `Dir::State::Lists=${join(home, 'lists')}`,
    `Dir::State::status=${join(home, 'status')}`,
    `Dir::Cache=${home}`,
    'APT::Sandbox::User=root',
    'Acquire::Retries=2',
    'Acquire::Languages=none',
  ].flatMap((option) => ['-o', option]);
  return async (args, cwd) => {
    try {
      return await run('apt-get', ['-q', ...options, ...args], { cwd, maxBuffer: 16 * 1024 * 1024 });
    } catch (thrown) {
      const said = String(thrown.stderr ?? thrown.message)
        .split('\n')
        .filter((line) => /^[EW]:/.test(line))
        .slice(0, 3)
        .join(' ');
      throw new Error(
        `apt-get ${args[0]} failed, so llama-server was not fetched: ${said || 'no reason given.'} Check the network and the Debian address in /etc/apt, or put a llama-server on PATH.`,
      );
    }
  };
}

/** The server's package and all that it depends on, as apt works them out on a machine with nothing installed. */
async function closureOf(apt) {
  const { stdout } = await apt(['-s', 'install', '--no-install-recommends', 'llama.cpp-tools']);
  const names = [...stdout.matchAll(/^Inst (\S+)/gm)].map((match) => match[1]);
  return names.filter((name) => !NOT_NEEDED.test(name));
}

async function patchServer({ work, cacheDir, machine, apt }) {
  const libs = join('root', 'usr', 'lib', machine.triplet);
  const target = join(work, 'bin', 'llama-server');
  await mkdir(dirname(target), { recursive: true });
  await copyFile(join(work, 'root', 'usr', 'bin', 'llama-server'), target);
  await chmod(target, 0o755);
  const args = ['--set-interpreter', join(cacheDir, libs, machine.loader), target];
  if (spawnSync('patchelf', ['--version'], { stdio: 'ignore' }).status === 0) {
    await run('patchelf', args);
    return;
  }
  // Not installed: sid's own, started through the loader that was just unpacked.
  const folder = join(work, 'apt', 'patchelf');
  await mkdir(folder, { recursive: true });
  await apt(['download', 'patchelf'], folder);
  for (const deb of (await readdir(folder)).filter((name) => name.endsWith('.deb'))) {
    await run('dpkg-deb', ['-x', join(folder, deb), folder]);
  }
  await run(join(work, libs, machine.loader), [
    '--library-path',
    join(work, libs),
    join(folder, 'usr', 'bin', 'patchelf'),
    ...args,
  ]);
}

function stampOf(cacheDir, machine, work) {
  const libs = join('root', 'usr', 'lib', machine.triplet);
  const backends = join(libs, 'ggml', 'backends0');
  const env = { LD_LIBRARY_PATH: [join(cacheDir, libs), join(cacheDir, libs, 'llama')].join(delimiter) };
  const name = cpuBackend(readdirSync(join(work, backends)), readCpuFlags());
  if (name !== null) env.GGML_BACKEND_PATH = join(cacheDir, backends, name);
  return { layout: LAYOUT, cacheDir, command: join(cacheDir, 'bin', 'llama-server'), env };
}

/** The CPU library this processor can run: AVX2 and FMA for `haswell`, else the plainest of its kind. */
export function cpuBackend(names, flags) {
  const cpu = names.filter((name) => name.startsWith('libggml-cpu')).sort();
  const wanted = flags.has('avx2') && flags.has('fma') && flags.has('f16c') ? ['haswell'] : [];
  for (const kind of [...wanted, 'x64', 'armv8.0', '.so']) {
    const match = cpu.find((name) => name.includes(kind));
    if (match !== undefined) return match;
  }
  return null;
}

function readCpuFlags() {
  try {
    return new Set(/^flags\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.split(' ') ?? []);
  } catch {
    return new Set();
  }
}

if (process.argv[1] !== undefined && import.meta.url === `file://${process.argv[1]}`) {
  try {
    const server = await ensureLlamaServer();
    process.stdout.write(`${server.command}\n`);
  } catch (thrown) {
    process.stderr.write(`llama-server: ${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
    process.exitCode = 1;
  }
}
