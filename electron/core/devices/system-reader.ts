import { parseMemInfo } from './meminfo.ts';
import type { DeviceReader } from './reader.ts';
import type { DeviceSample } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import { hostPool } from './unified.ts';

/** The system's own memory: a machine without a GPU, or one (Jetson) whose GPU lives in it. */
export function systemReader(
  tree: SysTree,
  options: {
    readonly kind: 'system' | 'unified';
    readonly name: string;
    readonly notes: readonly string[];
    readonly drivesDisplay: boolean | null;
  },
  periodMs: number,
): DeviceReader {
  return {
    read: ({ nowMs }) => {
      const host = parseMemInfo(tree.readText('/proc/meminfo') ?? '');
      const error =
        host.totalBytes === null ? 'The system’s memory can’t be read: is /proc mounted and readable?' : null;
      const sample: DeviceSample = {
        id: 'system',
        kind: options.kind,
        memory: options.kind,
        name: options.name,
        pciAddress: null,
        drivesDisplay: options.drivesDisplay,
        power: 'active',
        ...hostPool(host),
        gttTotalBytes: null,
        gttUsedBytes: null,
        hostAvailableBytes: host.availableBytes,
        busyPercent: null,
        source: 'meminfo',
        takenAtMs: nowMs,
        periodMs,
        notes: options.notes,
        error,
      };
      const troubles =
        error === null ? [] : [{ code: 'meminfo-unreadable', message: error, deviceId: 'system' }];
      return { devices: [sample], processes: [], troubles };
    },
    close: () => {},
  };
}
