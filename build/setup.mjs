/**
 * `npm start` and `npm test` prepare everything they need on a fresh machine, by themselves.
 * Runs before any package is installed, on whatever Node the machine has: nothing here may import
 * a package, and nothing may need Node newer than 18.
 *
 *   node build/setup.mjs start   packages, Node 24, the page, the program compiled
 *   node build/setup.mjs test    the same, and what the tests drive: Chromium and a llama-server
 */
import { fileURLToPath } from 'node:url';
import { ensureChromium } from './setup/chromium.mjs';
import { linkCommand } from './setup/command.mjs';
import { ensureCompiled } from './setup/compiled.mjs';
import { ensureLlamaServer } from './setup/llama-server.mjs';
import { ensureNetcat } from './setup/netcat.mjs';
import { checkVersions, ensurePackages, verifyPackages } from './setup/packages.mjs';
import { ensurePage } from './setup/page.mjs';
import { ensureServe } from './setup/serve.mjs';
import { SetupError, Steps } from './setup/steps.mjs';
import { ensureTurn } from './setup/turn.mjs';
import { ensureSoftwareVulkan } from './setup/vulkan.mjs';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** @param {string | undefined} mode */
async function main(mode) {
  if (mode !== 'start' && mode !== 'test') {
    throw new SetupError(`Call it as "node build/setup.mjs start" or "… test", not "${mode ?? ''}".`);
  }
  const steps = new Steps(process.stdout);
  checkVersions(process.versions.node);
  await ensurePackages(root, steps);
  await verifyPackages(root, steps);
  linkCommand(root);
  await ensurePage(root, steps);
  await ensureCompiled(root, steps);
  await ensureTurn(root, steps);
  await ensureServe(root, steps);
  if (mode === 'test') {
    await ensureChromium(steps);
    await ensureNetcat(steps);
    await ensureLlamaServer(root, steps);
    await ensureSoftwareVulkan(steps);
  }
  steps.finish();
}

main(process.argv[2]).catch((error) => {
  if (error instanceof SetupError) process.stderr.write(`\nSet-up stopped: ${error.message}\n`);
  else process.stderr.write(`\nSet-up failed unexpectedly: ${error?.stack ?? error}\n`);
  process.exit(1);
});
