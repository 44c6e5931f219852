/**
 * Compiles the program once ahead, so that its first start is as quick and as small as the later ones:
 * without the compiled forms Node keeps its TypeScript loader in memory, some 18 MB a process.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hashSources } from './page.mjs';
import { runProgram, SetupError } from './steps.mjs';

const SOURCES = ['electron', 'shared', 'build/landlord', 'build/setup/load-once.ts', 'package-lock.json'];

/**
 * What is missing is compiled at the start instead, so nothing that goes wrong here stops the set-up.
 *
 * @param {string} root
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureCompiled(root, steps) {
  const cache = process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compile');
  const stampFile = join(root, 'node_modules/.cache/landlord-compiled');
  const stamp = `${cache}\n${hashSources(root, SOURCES)}`;
  if (existsSync(cache) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  const flags = launcherFlags(readFileSync(join(root, 'build/landlord'), 'utf8'));
  await steps.run('Compiling the program', async () => {
    await runProgram(
      join(root, 'node_modules/node/bin/node'),
      [...flags, join(root, 'build/setup/load-once.ts')],
      { cwd: root, env: { ...process.env, NODE_COMPILE_CACHE: cache, NODE_OPTIONS: '' } },
    );
  });
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/**
 * The flags the launcher gives to Node: V8 keeps compiled forms apart by them.
 *
 * @param {string} launcher the text of build/landlord
 * @returns {string[]}
 */
export function launcherFlags(launcher) {
  const flags = /^exec "\$node"((?: --[\w=-]+)+)/m.exec(launcher)?.[1];
  if (flags === undefined) throw new SetupError('build/landlord does not say how it starts Node.');
  return flags.trim().split(' ');
}
