/** `landlord turn` as one file beside the sources: build/package/turn-bundle.ts. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launcherFlags } from './compiled.mjs';
import { isFresh } from './fresh.mjs';
import { runProgram } from './steps.mjs';

/**
 * Builds it when it is missing or not of the sources that lie here. Nothing that goes wrong here stops the
 * set-up: without it, turns run from the sources, and take longer to start.
 *
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureTurn(root, steps) {
  const folder = join(root, 'out/turn');
  if (isFresh(join(folder, 'landlord-turn.cjs'))) return;
  await steps.run('Compiling the turn command', async () => {
    const node = join(root, 'node_modules/node/bin/node');
    const flags = launcherFlags(readFileSync(join(root, 'build/landlord'), 'utf8'));
    const cache = process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compile');
    const env = { ...process.env, NODE_COMPILE_CACHE: cache, NODE_OPTIONS: '' };
    const built = await runProgram(node, [join(root, 'build/package/turn-bundle.ts')], { cwd: root, env });
    if (built.code !== 0) {
      rmSync(folder, { recursive: true, force: true });
      return;
    }
    // Compiled forms are kept when Node ends, and a turn that becomes its command never ends: this one stays.
    const gates = mkdtempSync(join(tmpdir(), 'landlord-setup-'));
    try {
      const turn = ['turn', '--backend', 'http://127.0.0.1:9', '--supervise', '--', node, '-e', '0'];
      await runProgram(node, [...flags, join(folder, 'landlord-turn.cjs'), ...turn], {
        cwd: root,
        env: { ...env, VRAM_LANDLORD_GATE_DIR: gates, VRAM_LANDLORD_REPORTS: 'off' },
      });
    } finally {
      rmSync(gates, { recursive: true, force: true });
    }
  });
}
