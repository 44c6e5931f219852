/**
 * `npm run test:electron`: the app in Electron itself, driven by Playwright. Not part of `npm test`: it
 * wants Electron's runtime, a display and an ordinary user, and says which of them is missing. It is the
 * only suite that may go unrun.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseHost, electronVersion, findElectron } from './host.ts';
import { ensureApp } from './package/ensure-app.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const electronPath = findElectron(root, process.env);
const host = chooseHost({
  env: process.env,
  platform: process.platform,
  uid: process.geteuid?.() ?? null,
  electronPath,
  electronVersion: electronVersion(electronPath),
});
if (host.kind === 'serve') {
  process.stdout.write(
    `The Electron suite was not run. ${host.why.replace(/, so this runs without the tray\.$/, '.')}\n`,
  );
} else {
  const appDir = await ensureApp(root, (line) => void process.stdout.write(`${line}\n`));
  const { status } = spawnSync(
    join(root, 'node_modules/.bin/vitest'),
    ['run', '--config', join(root, 'build/vitest-electron.config.ts'), ...process.argv.slice(2)],
    {
      cwd: root,
      env: { ...process.env, LANDLORD_ELECTRON: host.path, LANDLORD_APP_DIR: appDir },
      stdio: 'inherit',
    },
  );
  process.exitCode = status ?? 1;
}
