/**
 * `npm start`: the tray app where it can run, else the same runtime in plain Node with its page in
 * a browser. Becomes that program rather than starting it, so that signals and the exit code are its
 * own: `npm start -- --port 8000` passes the arguments on.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseHost, electronVersion, findElectron } from './host.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const given = process.argv.slice(2);

const electronPath = findElectron(root, process.env);
const host = chooseHost({
  env: process.env,
  platform: process.platform,
  uid: process.geteuid?.() ?? null,
  electronPath,
  electronVersion: electronVersion(electronPath),
});

/** Replaces this process; nothing after it runs. */
function become(program: string, args: readonly string[]): never {
  if (process.execve === undefined) {
    process.stderr.write('npm start needs Node 24 on Linux or macOS.\n');
    process.exit(1);
  }
  return process.execve(program, [program, ...args]);
}

if (host.kind === 'electron') {
  const { ensureApp } = await import('./package/ensure-app.ts');
  const appDir = await ensureApp(root, (line) => void process.stdout.write(`${line}\n`));
  become(host.path, [appDir, ...given]);
}
process.stdout.write(`${host.why}\n`);
// Its launcher knows the flags that keep the runtime small.
become(join(root, 'build/landlord'), ['serve', ...given]);
