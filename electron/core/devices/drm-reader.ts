import { readPower } from './amdgpu-sysfs.ts';
import { parseMemInfo } from './meminfo.ts';
import {
  type CardFacts,
  type DeviceReader,
  emptySample,
  HOST_MEMORY_NOTE,
  SUSPENDED_NOTE,
} from './reader.ts';
import type { ProcessMemory } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import { hostPool } from './unified.ts';

const NO_TOTAL_NOTE =
  'This driver does not tell the card’s total; what is shown in use is the sum over the processes that can be read.';

/**
 * Cards whose kernel driver has no memory files (i915, xe, nouveau). Integrated ones live in system
 * memory; of discrete ones only what processes show in fdinfo is known, which is a lower bound, so
 * total and free stay unknown. `usedBy` gives the latest scan's rows of this card; null: none yet.
 */
export function drmReader(
  tree: SysTree,
  card: CardFacts,
  usedBy: (deviceId: string) => readonly ProcessMemory[] | null,
  periodMs: number,
): DeviceReader {
  return {
    read: ({ nowMs }) => {
      const empty = emptySample(card, 'drm-fdinfo', nowMs, periodMs);
      const power = readPower(tree.readText, card.path);
      if (!tree.exists(`${card.path}/device`) && !tree.exists(`${card.path}/uevent`)) {
        const error = `${card.name} is gone (${card.pciAddress}): it was unplugged, or its driver was unloaded.`;
        return {
          devices: [{ ...empty, error }],
          processes: [],
          troubles: [{ code: 'card-gone', message: error, deviceId: card.id }],
        };
      }
      if (card.memory === 'unified') {
        const host = parseMemInfo(tree.readText('/proc/meminfo') ?? '');
        const sample = {
          ...empty,
          ...hostPool(host),
          power,
          source: 'meminfo' as const,
          hostAvailableBytes: host.availableBytes,
          notes: [...card.notes, HOST_MEMORY_NOTE],
        };
        return { devices: [sample], processes: [], troubles: [] };
      }
      if (power === 'suspended') {
        const sample = { ...empty, power, notes: [...card.notes, SUSPENDED_NOTE] };
        return { devices: [sample], processes: [], troubles: [] };
      }
      const rows = usedBy(card.id)?.filter((row) => row.bytes !== null) ?? [];
      const usedBytes = rows.length === 0 ? null : rows.reduce((sum, row) => sum + (row.bytes ?? 0), 0);
      const sample = { ...empty, power, usedBytes, notes: [...card.notes, NO_TOTAL_NOTE] };
      return { devices: [sample], processes: [], troubles: [] };
    },
    close: () => {},
  };
}
