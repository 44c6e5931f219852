/** `nc -U`, the plainest client of the ledger socket: installed for its tests where that is ours to do. */
import { existsSync } from 'node:fs';
import { runProgram } from './steps.mjs';

/** netcat-openbsd has -U; other netcats do not. */
const NETCAT = '/usr/bin/nc.openbsd';

/**
 * Where it can't be had, the tests that need it are not run, and the others prove the same with sockets
 * of their own.
 *
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureNetcat(steps) {
  if (existsSync(NETCAT) || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return;
  await steps.run('Installing netcat for the tests of the ledger socket (apt-get)', async () => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await runProgram('apt-get', ['update', '-qq'], { env });
    await runProgram('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'netcat-openbsd'], {
      env,
    });
  });
}
