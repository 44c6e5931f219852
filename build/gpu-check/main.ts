/** `gpu-check [--out DIR] [--sys ROOT]`: writes gpu-check.json and gpu-check.txt, and prints the latter. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { machineTree, type SysTree } from '../../electron/core/devices/sysfs.ts';
import { runAllocator } from './allocator.ts';
import { checkGpus } from './check.ts';
import { reportText } from './text.ts';

const [first, address] = process.argv.slice(2);
if (first === 'allocate') process.exitCode = await runAllocator(address ?? '');
else await check();

async function check(): Promise<void> {
  const { values } = parseArgs({
    options: { out: { type: 'string', default: '.' }, sys: { type: 'string', default: '' } },
  });
  const out = resolve(values.out);
  const command = [process.execPath, ...process.execArgv, import.meta.filename] as const;
  const report = await checkGpus(under(values.sys), command, new Date().toISOString());
  const text = reportText(report);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'gpu-check.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(out, 'gpu-check.txt'), text);
  process.stdout.write(`${text}\nWritten to ${join(out, 'gpu-check.txt')} and .json.\n`);
}

/** Another folder for /sys and /proc: what a container mounted them at, or a stand-in. */
function under(root: string): SysTree {
  if (root === '') return machineTree;
  return {
    readText: (path) => machineTree.readText(root + path),
    list: (path) => machineTree.list(root + path),
    exists: (path) => machineTree.exists(root + path),
    link: (path) => machineTree.link(root + path),
  };
}
