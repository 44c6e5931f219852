import type { NvidiaGpu } from '../../electron/core/devices/nvidia.ts';

/** What NVML says of a card, by the names that nvidia-smi's answer has. */
export type NvmlView = Pick<
  NvidiaGpu,
  | 'pciAddress'
  | 'name'
  | 'totalBytes'
  | 'reservedBytes'
  | 'usedBytes'
  | 'freeBytes'
  | 'busyPercent'
  | 'displayActive'
  | 'migEnabled'
>;

export interface FieldResult {
  readonly field: keyof NvmlView;
  readonly nvmlBefore: string | number | boolean | null;
  readonly nvmlAfter: string | number | boolean | null;
  readonly smi: string | number | boolean | null;
  readonly agrees: boolean;
}

/** nvidia-smi prints whole MiB, and each of its figures is read at a moment of its own. */
const MIB = 1024 ** 2;
const SLACK_BYTES = 2 * MIB;
/** The card may have been at work in one of the readings and not in the next. */
const SLACK_PERCENT = 15;

/** NVML, read before and after a run of nvidia-smi, against what that said: each field between the two, or near. */
export function compareFields(before: NvmlView, after: NvmlView, smi: NvidiaGpu): readonly FieldResult[] {
  const fields: readonly (keyof NvmlView)[] = [
    'pciAddress',
    'name',
    'totalBytes',
    'reservedBytes',
    'usedBytes',
    'freeBytes',
    'busyPercent',
    'displayActive',
    'migEnabled',
  ];
  return fields.map((field) => ({
    field,
    nvmlBefore: before[field],
    nvmlAfter: after[field],
    smi: smi[field],
    agrees: agree(field, before[field], after[field], smi[field]),
  }));
}

type Value = string | number | boolean | null;

function agree(field: keyof NvmlView, before: Value, after: Value, smi: Value): boolean {
  if (typeof before === 'number' && typeof after === 'number' && typeof smi === 'number') {
    const slack = field === 'busyPercent' ? SLACK_PERCENT : SLACK_BYTES;
    return smi >= Math.min(before, after) - slack && smi <= Math.max(before, after) + slack;
  }
  if (field === 'name') return nameOf(before) === nameOf(smi);
  // A card that can't be split says so in one and nothing in the other.
  if (field === 'migEnabled') return (before ?? false) === (smi ?? false);
  return before === smi || after === smi;
}

/** One has the vendor before the model, the other may not. */
function nameOf(value: Value): string {
  return String(value).replace(/^NVIDIA\s+/i, '');
}
