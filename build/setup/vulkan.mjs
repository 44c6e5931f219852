/** Mesa's software Vulkan device, on which the engine's tests offload without a graphics card. */
import { existsSync, readdirSync } from 'node:fs';
import { runProgram } from './steps.mjs';

const ICD_FOLDER = '/usr/share/vulkan/icd.d';
const PACKAGES = ['mesa-vulkan-drivers', 'libvulkan1'];

/**
 * Where it can't be had, the tests that need it are left out, or fail where skipping is forbidden.
 *
 * @param {import('./steps.mjs').Steps} steps
 */
export async function ensureSoftwareVulkan(steps) {
  if (process.platform !== 'linux' || hasSoftwareVulkan()) return;
  const how = `The engine's tests on a Vulkan device need ${PACKAGES.join(' and ')}`;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    steps.say(`${how} (Debian: apt-get install ${PACKAGES.join(' ')}).`);
    return;
  }
  const code = await steps.run('Installing a software Vulkan device for the tests (apt-get)', async () => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await runProgram('apt-get', ['update', '-qq'], { env });
    const args = ['install', '-y', '-qq', '--no-install-recommends', ...PACKAGES];
    return (await runProgram('apt-get', args, { env })).code;
  });
  if (code !== 0 || !hasSoftwareVulkan()) steps.say(`${how}, and apt-get did not install them.`);
}

export function hasSoftwareVulkan(folder = ICD_FOLDER) {
  return existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('lvp_icd'));
}
