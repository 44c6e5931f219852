import { parseCount, plausibleBytes } from './quantity.ts';
import type { SysTree } from './sysfs.ts';

const KFD = '/sys/class/kfd/kfd';

/** A GPU of the compute driver's topology (`/sys/class/kfd/kfd/topology/nodes/N`). */
export interface KfdNode {
  readonly gpuId: number;
  /** `0000:03:00.0`. */
  readonly pciAddress: string | null;
  readonly sharesNodeWithCpu: boolean;
}

/** Lines `key value` of a topology node's `properties`. */
export function parseKfdProperties(text: string): Readonly<Record<string, number>> {
  const fields: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const [key, value] = line.trim().split(/\s+/);
    const count = parseCount(value);
    if (key !== undefined && key !== '' && count !== null) fields[key] = count;
  }
  return fields;
}

/** `location_id` holds bus << 8 | device << 3 | function, as kfd_topology.c builds it. */
export function kfdNodeOf(gpuIdText: string | null, propertiesText: string | null): KfdNode | null {
  const gpuId = parseCount(gpuIdText?.trim());
  if (gpuId === null || gpuId === 0 || propertiesText === null) return null;
  const fields = parseKfdProperties(propertiesText);
  const location = fields.location_id;
  const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');
  return {
    gpuId,
    pciAddress:
      location === undefined
        ? null
        : `${hex(fields.domain ?? 0, 4)}:${hex((location >> 8) & 0xff, 2)}:${hex((location >> 3) & 0x1f, 2)}.${location & 7}`,
    sharesNodeWithCpu: (fields.cpu_cores_count ?? 0) > 0 && (fields.simd_count ?? 0) > 0,
  };
}

export function readKfdNodes(tree: SysTree): readonly KfdNode[] {
  const nodes = `${KFD}/topology/nodes`;
  return tree.list(nodes).flatMap((entry) => {
    const node = kfdNodeOf(
      tree.readText(`${nodes}/${entry}/gpu_id`),
      tree.readText(`${nodes}/${entry}/properties`),
    );
    return node === null ? [] : [node];
  });
}

/** Bytes a compute process holds, by gpu id: `/sys/class/kfd/kfd/proc/<pid>/vram_<gpu id>`. */
export interface KfdUse {
  readonly pid: number;
  readonly gpuId: number;
  readonly bytes: number;
}

export function readKfdUse(tree: SysTree): readonly KfdUse[] {
  const uses: KfdUse[] = [];
  for (const entry of tree.list(`${KFD}/proc`)) {
    const pid = parseCount(entry);
    if (pid === null) continue;
    for (const file of tree.list(`${KFD}/proc/${entry}`)) {
      const gpuId = parseCount(/^vram_(\d+)$/.exec(file)?.[1]);
      if (gpuId === null) continue;
      const bytes = plausibleBytes(parseCount(tree.readText(`${KFD}/proc/${entry}/${file}`)?.trim()));
      if (bytes !== null) uses.push({ pid, gpuId, bytes });
    }
  }
  return uses;
}
