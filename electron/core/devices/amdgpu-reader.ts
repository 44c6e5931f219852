import { readAmdMemory, readPower } from './amdgpu-sysfs.ts';
import { parseMemInfo } from './meminfo.ts';
import {
  type CardFacts,
  type DeviceReader,
  emptySample,
  type Reading,
  type ReadRequest,
  SUSPENDED_NOTE,
  shouldLeaveAlone,
} from './reader.ts';
import type { DeviceSample } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import { apuPool } from './unified.ts';

/** Reads one amdgpu card through sysfs: five small files a turn. */
export function amdgpuReader(tree: SysTree, card: CardFacts, periodMs: number): DeviceReader {
  const read = (request: ReadRequest): Reading => {
    const sample = readCard(tree, card, request, periodMs);
    const code = tree.exists(`${card.path}/device`) ? 'amdgpu-unreadable' : 'amdgpu-gone';
    const troubles = sample.error === null ? [] : [{ code, message: sample.error, deviceId: card.id }];
    return { devices: [sample], processes: [], troubles };
  };
  return { read, close: () => {} };
}

function readCard(tree: SysTree, card: CardFacts, request: ReadRequest, periodMs: number): DeviceSample {
  const empty = emptySample(card, 'amdgpu-sysfs', request.nowMs, periodMs);
  const power = readPower(tree.readText, card.path);
  if (power === 'suspended') return { ...empty, power, notes: [...card.notes, SUSPENDED_NOTE] };
  // Reading gpu_busy_percent restarts the card's autosuspend timer (amdgpu_pm.c); mem_info_* does not.
  const quiet = shouldLeaveAlone(card, request);
  const memory = readAmdMemory(
    (path) => (quiet && path.endsWith('gpu_busy_percent') ? null : tree.readText(path)),
    card.path,
  );
  if (memory.vramTotalBytes === null && memory.gttTotalBytes === null) {
    const why = tree.exists(`${card.path}/device`)
      ? `The memory files of ${card.name} under ${card.path}/device can’t be read; the driver does not answer, or /sys is closed to this user or container: see \`sudo dmesg | grep amdgpu\`.`
      : `${card.name} is gone (${card.pciAddress}): it was unplugged, or its driver was unloaded.`;
    return { ...empty, power, error: why };
  }
  const shared = {
    ...empty,
    power,
    busyPercent: memory.busyPercent,
    gttTotalBytes: memory.gttTotalBytes,
    gttUsedBytes: memory.gttUsedBytes,
  };
  if (card.memory === 'unified') {
    const host = parseMemInfo(tree.readText('/proc/meminfo') ?? '');
    return { ...shared, ...apuPool(memory, host), hostAvailableBytes: host.availableBytes };
  }
  const { vramTotalBytes: totalBytes, vramUsedBytes: usedBytes } = memory;
  const half = usedBytes === null ? `${card.name} did not give how much of its memory is in use.` : null;
  return {
    ...shared,
    totalBytes,
    usedBytes,
    freeBytes: totalBytes === null || usedBytes === null ? null : totalBytes - usedBytes,
    notes: half === null ? card.notes : [...card.notes, half],
  };
}
