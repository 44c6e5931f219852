import { type MigInstance, migTotalBytes, migUsedBytes, type NvidiaTrouble } from './nvidia.ts';
import type { SysTree } from './sysfs.ts';

/**
 * What the driver said when it was asked for a card's memory: figures, or why there are none.
 *
 *   given ─ not-supported ─ no-permission ─ lost ─ reset ─ error ─ missing (it was not mentioned at all)
 */
export type MemoryAnswer =
  | 'given'
  | 'not-supported'
  | 'no-permission'
  | 'lost'
  | 'reset'
  | 'error'
  | 'missing';

export interface NvidiaMemoryFacts {
  readonly name: string;
  readonly pciAddress: string | null;
  /** The machine is a Jetson or another Tegra (`isTegraHost`). */
  readonly tegraHost: boolean;
  /** What the settings say of this card's memory; null: nothing. */
  readonly setting: 'discrete' | 'unified' | null;
  readonly answer: MemoryAnswer;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly freeBytes: number | null;
  /** null: not told. */
  readonly migEnabled: boolean | null;
  readonly mig: readonly MigInstance[];
}

export type NvidiaMemoryKind =
  | {
      readonly kind: 'own';
      readonly totalBytes: number | null;
      readonly usedBytes: number | null;
      readonly freeBytes: number | null;
      readonly note: string | null;
    }
  /** It has no memory of its own: the system's counts. */
  | { readonly kind: 'host' }
  | { readonly kind: 'unknown'; readonly trouble: NvidiaTrouble };

const MIG_NOTE =
  'The card is split into MIG instances, and these figures are the sum over them: a model fits only within one.';

/**
 * Where a card's models live. The system's memory is only taken where something says that the card
 * has none of its own: a missing figure of a discrete card is unknown, or the machine's free RAM
 * would pass for free VRAM. Split by MIG, a card's own figures need root (NVML_ERROR_NO_PERMISSION),
 * its instances' do not.
 */
export function decideNvidiaMemory(facts: NvidiaMemoryFacts): NvidiaMemoryKind {
  if (facts.setting === 'unified') return { kind: 'host' };
  const split = facts.migEnabled === true || facts.mig.length > 0;
  const answered = facts.answer === 'given' || facts.answer === 'not-supported';
  if (answered && !split && facts.setting === null && hasNoOwnMemory(facts)) return { kind: 'host' };
  const inInstances = split ? migUsedBytes(facts.mig) : null;
  const { totalBytes } = facts;
  if (totalBytes === null ? facts.usedBytes !== null : totalBytes > 0) {
    const usedBytes = facts.usedBytes ?? inInstances;
    const rest = totalBytes === null || usedBytes === null ? null : Math.max(0, totalBytes - usedBytes);
    return { kind: 'own', totalBytes, usedBytes, freeBytes: facts.freeBytes ?? rest, note: null };
  }
  if (split && inInstances !== null && facts.answer !== 'lost' && facts.answer !== 'reset') {
    const instances = migTotalBytes(facts.mig);
    const freeBytes = instances === null ? null : Math.max(0, instances - inInstances);
    return { kind: 'own', totalBytes: instances, usedBytes: inInstances, freeBytes, note: MIG_NOTE };
  }
  return { kind: 'unknown', trouble: TROUBLES[facts.answer] };
}

/** Jetson's iGPU (`Orin (nvgpu)`), Thor, and the GB10 of DGX Spark, by name or by its PCI id. */
const INTEGRATED = /\bnvgpu\b|\btegra\b|\b(orin|xavier|thor)\b|\bGB10\b|\b10de:2e12\b/i;
/** Product lines with memory of their own; such a card can be plugged into a Tegra board as well. */
const WITH_OWN_MEMORY = /geforce|quadro|tesla|titan|\b[RG]TX\b|\b(?:[ABHLPTV]|G[BH]|RTX ?)\d{1,4}[A-Z]*\b/i;

function hasNoOwnMemory({ name, tegraHost }: NvidiaMemoryFacts): boolean {
  return INTEGRATED.test(name) || (tegraHost && !WITH_OWN_MEMORY.test(name));
}

/** NVIDIA's own mark of a Jetson's root file system, else the device tree. */
export function isTegraHost(tree: SysTree): boolean {
  return (
    tree.exists('/etc/nv_tegra_release') ||
    (tree.readText('/proc/device-tree/compatible') ?? '').includes('nvidia,tegra')
  );
}

const TROUBLES: Readonly<Record<MemoryAnswer, NvidiaTrouble>> = {
  given: {
    code: 'nvidia-memory-unreadable',
    message: 'the driver gives a total of 0 bytes: see `nvidia-smi -q -d MEMORY`.',
  },
  'not-supported': {
    code: 'nvidia-memory-unsupported',
    message:
      'the driver does not tell this card’s memory. If the card shares the system’s memory, say so in the config: `devices: [{ kind: nvidia, memory: unified }]`.',
  },
  'no-permission': {
    code: 'nvidia-no-permission',
    message:
      'the driver does not let this user read the card’s memory: add the user to the group of /dev/nvidia*, or run the program in the container with the card’s rights.',
  },
  lost: {
    code: 'nvidia-gpu-lost',
    message:
      'the card has dropped off the PCI bus: restart the machine, and check its power and seating if it comes back.',
  },
  reset: {
    code: 'nvidia-reset-required',
    message:
      'the card asks for a reset: stop what uses it and run `sudo nvidia-smi --gpu-reset`, or restart.',
  },
  error: {
    code: 'nvidia-memory-unreadable',
    message:
      'the driver answers an error for the card’s memory: see `nvidia-smi -q -d MEMORY` and `sudo dmesg | grep -i xid`; restart the machine if it stays.',
  },
  missing: {
    code: 'nvidia-memory-unreadable',
    message: 'the driver’s answer does not hold the card’s memory: update the driver.',
  },
};

/** What the words in place of figures mean; the first that is no figure decides, `total` before `used`. */
export function memoryAnswerOf(words: readonly (string | null)[]): MemoryAnswer {
  const said = words.filter((word) => word !== null).map((word) => word.trim().replace(/^\[|\]$/g, ''));
  if (said.length === 0 || said.every((word) => word === '')) return 'missing';
  if (said.some((word) => /^\d/.test(word))) return 'given';
  const is = (pattern: RegExp): boolean => said.some((word) => pattern.test(word));
  if (is(/lost/i)) return 'lost';
  if (is(/reset/i)) return 'reset';
  if (is(/permission/i)) return 'no-permission';
  // `[Not Supported]` became `[N/A]` with driver 440.
  return said.every((word) => /^(n\/?a|not supported|not available)$/i.test(word))
    ? 'not-supported'
    : 'error';
}
