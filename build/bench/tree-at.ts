import { machineTree, type SysTree } from '../../electron/core/devices/sysfs.ts';

/** A folder as if it were the root of /sys and /proc: read from the disk as the machine's own are. */
export function treeAt(root: string): SysTree {
  return {
    readText: (path) => machineTree.readText(root + path),
    list: (path) => machineTree.list(root + path),
    exists: (path) => machineTree.exists(root + path),
    link: (path) => machineTree.link(root + path),
  };
}
