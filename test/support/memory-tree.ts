import type { SysTree } from '../../electron/core/devices/sysfs.ts';

/** A /sys or /proc made of a record of paths; change the record and the tree changes. Links are separate. */
export function memoryTree(
  files: Readonly<Record<string, string | null>>,
  links: Readonly<Record<string, string>> = {},
): SysTree & { readonly reads: string[] } {
  const reads: string[] = [];
  const paths = (): string[] => [...Object.keys(files), ...Object.keys(links)];
  return {
    reads,
    readText: (path) => {
      reads.push(path);
      return files[path] ?? null;
    },
    list: (path) => {
      const prefix = `${path.replace(/\/$/, '')}/`;
      const names = paths()
        .filter((entry) => entry.startsWith(prefix))
        .map((entry) => entry.slice(prefix.length).split('/')[0] ?? '');
      return [...new Set(names)];
    },
    exists: (path) => paths().some((entry) => entry === path || entry.startsWith(`${path}/`)),
    link: (path) => links[path] ?? null,
  };
}
