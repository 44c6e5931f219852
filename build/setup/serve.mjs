/** `landlord serve` as plain JavaScript beside the sources: build/package/serve-bundle.ts. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { launcherFlags } from './compiled.mjs';
import { isFresh } from './fresh.mjs';
import { runProgram } from './steps.mjs';

/**
 * Builds it when it is missing or not of the sources that lie here. Nothing that goes wrong here stops the
 * set-up: without it, `serve` runs from the sources, and takes more memory.
 *
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureServe(root, steps) {
  const folder = join(root, 'out/node');
  const program = join(folder, 'start.cjs');
  if (isFresh(program)) return;
  await steps.run('Compiling the serve command', async () => {
    const node = join(root, 'node_modules/node/bin/node');
    const cache = process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compile');
    const env = { ...process.env, NODE_COMPILE_CACHE: cache, NODE_OPTIONS: '' };
    const built = await runProgram(node, [join(root, 'build/package/serve-bundle.ts')], { cwd: root, env });
    if (built.code !== 0) {
      rmSync(program, { force: true });
      return;
    }
    // Loaded once, so that what V8 makes of it is kept for the first start.
    const parts = readdirSync(folder).filter((name) => /^(run-serve|runtime)-.*\.js$/.test(name));
    const load = `for (const part of ${JSON.stringify(parts)}) await import('./' + part);`;
    const flags = launcherFlags(readFileSync(join(root, 'build/landlord'), 'utf8'));
    await runProgram(node, [...flags, '--input-type=module', '--eval', load], { cwd: folder, env });
  });
}
