import { readPower } from '../../electron/core/devices/amdgpu-sysfs.ts';
import { loadNvml } from '../../electron/core/devices/nvml-binding.ts';
import { nvmlReader } from '../../electron/core/devices/nvml-reader.ts';
import type { CardFacts } from '../../electron/core/devices/reader.ts';
import type { SysTree } from '../../electron/core/devices/sysfs.ts';

export interface PowerResult {
  readonly card: string;
  readonly maySuspend: boolean;
  readonly powerBefore: string;
  readonly powerAfter: string;
  /** What the sampler said of the card meanwhile. */
  readonly notes: readonly string[];
  readonly totalBytes: number | null;
  readonly readings: number;
}

export interface MissingResult {
  readonly pciAddress: string;
  readonly error: string | null;
  readonly totalBytes: number | null;
}

const READINGS = 10;
const PERIOD_MS = 500;
const NAMES = { name: () => null, startTimeTicks: () => null };

/** Watches a card as the runtime does, and says whether that changed its power. */
export async function watchPower(tree: SysTree, card: CardFacts): Promise<PowerResult> {
  const powerBefore = readPower(tree.readText, card.path);
  const reader = nvmlReader(tree, [card], loadNvml, null, NAMES, PERIOD_MS);
  let last = null;
  for (let turn = 0; turn < READINGS; turn += 1) {
    const nowMs = performance.now();
    // As where nobody uses the card: one that may sleep is to be left alone.
    last = (await reader.read({ nowMs, processes: false, openCards: new Set() })).devices[0] ?? null;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  reader.close();
  return {
    card: card.pciAddress,
    maySuspend: card.maySuspend,
    powerBefore,
    powerAfter: readPower(tree.readText, card.path),
    notes: last?.notes ?? [],
    totalBytes: last?.totalBytes ?? null,
    readings: READINGS,
  };
}

/** What the sampler says of a card that is not there: an error in words, and no figure. */
export async function askMissing(tree: SysTree): Promise<MissingResult> {
  const pciAddress = '0000:ff:1f.0';
  const card: CardFacts = {
    id: `pci:${pciAddress}`,
    kind: 'nvidia',
    name: 'A card that is not there',
    pciAddress,
    path: `/sys/bus/pci/devices/${pciAddress}`,
    memory: 'discrete',
    drivesDisplay: true,
    maySuspend: false,
    notes: [],
  };
  const reader = nvmlReader(tree, [card], loadNvml, null, NAMES, PERIOD_MS);
  const { devices } = await reader.read({ nowMs: performance.now(), processes: false, openCards: new Set() });
  reader.close();
  return { pciAddress, error: devices[0]?.error ?? null, totalBytes: devices[0]?.totalBytes ?? null };
}
