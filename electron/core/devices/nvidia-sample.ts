import { parseMemInfo } from './meminfo.ts';
import { decideNvidiaMemory, isTegraHost, type NvidiaMemoryFacts } from './nvidia-memory.ts';
import { type CardFacts, HOST_MEMORY_NOTE } from './reader.ts';
import type { DeviceSample, SamplerTrouble } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import { hostPool } from './unified.ts';

export type AnsweredMemory = Pick<
  NvidiaMemoryFacts,
  'answer' | 'totalBytes' | 'usedBytes' | 'freeBytes' | 'migEnabled' | 'mig'
>;

/** A sample with its memory, and the trouble where that can't be told. `sample` has the driver's name of the card. */
export function withNvidiaMemory(
  tree: SysTree,
  card: CardFacts,
  sample: DeviceSample,
  memory: AnsweredMemory,
): { readonly sample: DeviceSample; readonly troubles: readonly SamplerTrouble[] } {
  const decided = decideNvidiaMemory({
    // The name from the PCI ids may say what the driver's does not.
    name: `${sample.name} / ${card.name}`,
    pciAddress: sample.pciAddress,
    tegraHost: isTegraHost(tree),
    setting: card.memorySetting ?? null,
    ...memory,
  });
  if (decided.kind === 'unknown') {
    const error = `${sample.name}: ${decided.trouble.message}`;
    return {
      sample: { ...sample, error },
      troubles: [{ code: decided.trouble.code, message: error, deviceId: card.id }],
    };
  }
  if (decided.kind === 'host') {
    const host = parseMemInfo(tree.readText('/proc/meminfo') ?? '');
    const unified: DeviceSample = {
      ...sample,
      kind: 'unified',
      memory: 'unified',
      ...hostPool(host),
      hostAvailableBytes: host.availableBytes,
      source: 'meminfo',
      notes: [...sample.notes, HOST_MEMORY_NOTE],
    };
    return { sample: unified, troubles: [] };
  }
  const { totalBytes, usedBytes, freeBytes, note } = decided;
  const notes = note === null ? sample.notes : [...sample.notes, note];
  return { sample: { ...sample, totalBytes, usedBytes, freeBytes, notes }, troubles: [] };
}
