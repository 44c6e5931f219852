import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fail, messageOf, ok, type Result } from '../../shared/errors.ts';
import { makeFolders } from '../core/make-folders.ts';
import { type Invocation, readPort } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { UNIT_MARK, UNIT_NAME, unitFile, unitText } from './service-unit.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

const SYSTEMCTL_LIMIT_MS = 30_000;
const RELOAD = ['daemon-reload'];
const ENABLE = ['enable', '--now', UNIT_NAME];
const DISABLE = ['disable', '--now', UNIT_NAME];

/** Installs or removes the service of this user: 0 done, 69 refused. */
export const runService: Run = async (invocation, terminal) => {
  const [what] = invocation.positionals;
  if (what !== 'install' && what !== 'uninstall') {
    return usageError(invocation.command, `it can install or uninstall, not ${what}.`, terminal);
  }
  const args = serveArguments(invocation);
  if (!args.ok) return usageError(invocation.command, args.error.message, terminal);
  if (what === 'uninstall' && args.value.length > 0) {
    return usageError(invocation.command, 'uninstall takes no options but --dry-run.', terminal);
  }
  const isDry = invocation.flag('dry-run');
  const done =
    what === 'install' ? await install(args.value, isDry, terminal) : await uninstall(isDry, terminal);
  if (done.ok) return EXIT.done;
  terminal.err(`landlord service: ${plain(done.error.message)}`);
  return EXIT.refused;
};

async function install(args: readonly string[], isDry: boolean, terminal: Terminal): Promise<Result<void>> {
  if (process.platform !== 'linux') {
    return fail(
      'not_supported',
      'The service is a systemd unit, so it is for Linux; start the app at login instead.',
    );
  }
  const launcher = ownLauncher();
  if (!launcher.ok) return launcher;
  const file = unitFile(process.env, homedir());
  const text = unitText({ launcher: launcher.value, args });
  const there = await readUnit(file);
  if (there !== null && !there.startsWith(UNIT_MARK)) return foreign(file);
  if (isDry) {
    lines(terminal, `Would write ${file}:\n\n${text}\nand run:`);
    for (const command of [RELOAD, ENABLE]) terminal.out(`  ${shown(command)}`);
    return ok(undefined);
  }
  try {
    makeFolders(dirname(file), 0o700);
    await writeFile(file, text);
  } catch (error) {
    return fail('storage_failed', `${file} can't be written: ${messageOf(error)}.`);
  }
  for (const command of [RELOAD, ENABLE]) {
    const why = systemctl(command);
    if (why !== null) {
      return fail(
        'not_supported',
        `${file} is written, but \`${shown(command)}\` failed: ${why}. Run it in a session of your own that has systemd.`,
      );
    }
  }
  terminal.out(plain(`VRAM Landlord runs as a service now, and starts with your session: ${file}`));
  terminal.out(
    '`loginctl enable-linger` starts it with the machine; `journalctl --user -u vram-landlord` shows its log.',
  );
  return ok(undefined);
}

async function uninstall(isDry: boolean, terminal: Terminal): Promise<Result<void>> {
  const file = unitFile(process.env, homedir());
  const there = await readUnit(file);
  if (there === null) {
    terminal.out(plain(`There is no service to remove: ${file} does not exist.`));
    return ok(undefined);
  }
  if (!there.startsWith(UNIT_MARK)) return foreign(file);
  if (isDry) {
    lines(terminal, `Would run:\n  ${shown(DISABLE)}\nremove ${file}\nand run:\n  ${shown(RELOAD)}`);
    return ok(undefined);
  }
  // Where systemd does not answer, nothing of it runs: the file is removed all the same, and that is said.
  const why = systemctl(DISABLE);
  try {
    await rm(file, { force: true });
  } catch (error) {
    return fail('storage_failed', `${file} can't be removed: ${messageOf(error)}.`);
  }
  systemctl(RELOAD);
  terminal.out(plain(`The service is removed: ${file}`));
  if (why !== null)
    terminal.err(plain(`\`${shown(DISABLE)}\` failed: ${why}. If it still runs, stop it by hand.`));
  return ok(undefined);
}

/** The options of `serve`, with paths that do not depend on where the service is started. */
function serveArguments(invocation: Invocation): Result<readonly string[]> {
  const port = readPort(invocation, 1);
  if (!port.ok) return port;
  const args: string[] = [];
  for (const option of ['config', 'state-dir']) {
    const path = invocation.text(option);
    // A control character has no place in a path, and none in a unit's line.
    if (path !== null && (path === '' || /\p{Cc}/u.test(path)))
      return fail('bad_input', `--${option} takes a path.`);
    if (path !== null) args.push(`--${option}`, resolve(path));
  }
  if (port.value !== null) args.push('--port', String(port.value));
  return ok(args);
}

/** `build/landlord` of the sources, or the command beside the packed app. */
function ownLauncher(): Result<string> {
  const isPacked = !import.meta.filename.endsWith('.ts');
  const path = isPacked
    ? join(import.meta.dirname, '..', '..', '..', 'bin', 'landlord')
    : join(import.meta.dirname, '..', '..', 'build', 'landlord');
  // An AppImage is mounted for as long as it runs, at another place each time.
  if (process.env.APPIMAGE !== undefined && isPacked) {
    return fail(
      'not_supported',
      'An AppImage has no lasting place to start a service from; install the deb package.',
    );
  }
  return existsSync(path)
    ? ok(path)
    : fail('not_supported', `The command ${path} is missing; install VRAM Landlord again.`);
}

async function readUnit(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    return null;
  }
}

function foreign(file: string): Result<never> {
  return fail('not_permitted', `${file} was not written by this command; move it away first.`);
}

/** null: done. A string: why not, without a full stop. */
function systemctl(args: readonly string[]): string | null {
  const { status, error, stderr } = spawnSync('systemctl', ['--user', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: SYSTEMCTL_LIMIT_MS,
  });
  if (error !== undefined) return messageOf(error);
  if (status === 0) return null;
  return stderr.trim().split('\n')[0]?.replace(/\.$/, '') || `it ended with ${status}`;
}

function lines(terminal: Terminal, text: string): void {
  for (const line of text.split('\n')) terminal.out(plain(line));
}

function shown(args: readonly string[]): string {
  return `systemctl --user ${args.join(' ')}`;
}
