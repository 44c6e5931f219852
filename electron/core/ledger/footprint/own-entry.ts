/** A table's own entry; names come from files and command lines, and `constructor` is none of ours. */
export function ownEntry<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
