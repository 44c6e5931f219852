import { GIB, MIB } from './quantity.ts';

/** What the kernel shows of an AMD card that bears on whether its memory is its own; null: not told. */
export interface MemoryKindSignals {
  /** PCI ids, lower-case hex without `0x`: `1002`, `150e`. */
  readonly vendorId: string | null;
  readonly deviceId: string | null;
  /** PCI class, six hex digits: `030000`, `038000`. */
  readonly pciClass: string | null;
  readonly vramTotalBytes: number | null;
  readonly visibleVramTotalBytes: number | null;
  readonly gttTotalBytes: number | null;
  /** Maker of the memory chips (`samsung`); APUs have none or `unknown`. */
  readonly vramVendor: string | null;
  /** `mem_busy_percent` is there: the driver hides it on APUs. */
  readonly hasMemBusy: boolean | null;
  /** hwmon shows the north bridge's voltage (`vddnb`): only APUs have that rail. */
  readonly hasNorthBridgeRail: boolean | null;
  /** Its kfd topology node has CPU cores as well as SIMDs. */
  readonly sharesNodeWithCpu: boolean | null;
}

export interface MemoryKind {
  readonly memory: 'discrete' | 'unified';
  /** Why, for the window and `doctor`; strongest first. */
  readonly reasons: readonly string[];
  /** True when a setting decided. */
  readonly overridden: boolean;
}

/** PCI device ids of AMD's APUs, from the pci.ids database (public domain) and amdgpu's id table. */
const APU_DEVICE_IDS: ReadonlySet<string> = new Set([
  ...['1304', '1309', '130a', '130c', '130e', '130f', '1313', '1315', '1318'], // Kaveri
  ...['9830', '9832', '9838', '9850', '9851', '9853', '9856', '9874', '98e4'], // Kabini … Stoney
  ...['15dd', '15d8', '1636', '1638', '164c', '15e7'], // Raven … Barcelo
  ...['163f', '1435', '164d', '1681', '1506'], // Van Gogh, Rembrandt, Mendocino
  ...['164e', '13c0', '13c1', '13e9', '143f', '13fe'], // Raphael, Granite Ridge, Cyan Skillfish
  ...['15bf', '15c8', '1900', '1901', '150e', '1586', '1114', '1902'], // Phoenix … Krackan
  '74a0', // MI300A
]);

/**
 * AMD numbers graphics cards from 6600 to 6fff and from 7300 to 75ff (Southern Islands to RDNA 4,
 * Instinct), with MI300A the one APU among them; other APUs lie below.
 */
function isDiscreteId(deviceId: string): boolean {
  return /^(6[6-9a-f]|7[345])[0-9a-f]{2}$/.test(deviceId) && !APU_DEVICE_IDS.has(deviceId);
}

/** Firmware carves out in steps of no less. */
const CARVE_OUT_STEP = 64 * MIB;

/**
 * Whether a card's memory is its own. No single fact tells: GTT is larger than VRAM on some
 * discrete cards, carve-outs reach 96 GB, and class 0x0380 is shared by APUs and accelerators. So
 * each fact has a weight and the sum decides; with nothing to go by it is taken as discrete,
 * because that never counts system memory as room for a model. A setting overrides.
 */
export function decideMemoryKind(
  signals: MemoryKindSignals,
  override: 'discrete' | 'unified' | null = null,
): MemoryKind {
  if (override !== null) {
    return { memory: override, reasons: [`the settings say it is ${override}`], overridden: true };
  }
  const votes: { readonly weight: number; readonly why: string }[] = [];
  const vote = (applies: boolean, weight: number, why: string): void => {
    if (applies) votes.push({ weight, why });
  };
  const { vramTotalBytes: vram, visibleVramTotalBytes: visible, gttTotalBytes: gtt } = signals;
  const vendor = signals.vramVendor?.trim().toLowerCase() ?? '';
  const id = signals.vendorId === '8086' ? null : signals.deviceId;
  // An id names the chip: all else together must not outweigh it.
  vote(id !== null && APU_DEVICE_IDS.has(id), 20, `device id ${id} is an APU's`);
  vote(id !== null && isDiscreteId(id), -6, `device id ${id} is a graphics card's`);
  vote(signals.sharesNodeWithCpu === true, 5, 'the compute driver lists it together with CPU cores');
  vote(signals.hasNorthBridgeRail === true, 5, 'its sensors include the north bridge rail of an APU');
  // Newer kernels list most APUs apart from the CPU as well, so this alone is no proof.
  vote(signals.sharesNodeWithCpu === false, -3, 'the compute driver lists it apart from the CPU');
  vote(signals.hasNorthBridgeRail === false, -3, 'its sensors lack the north bridge rail of an APU');
  vote(vendor !== '' && vendor !== 'unknown', -5, `its memory chips are made by ${vendor}`);
  vote(signals.hasMemBusy === true, -4, 'it reports how busy its memory is, which APUs do not');
  vote(
    vram !== null && visible !== null && visible < vram,
    -4,
    'the CPU sees only a part of its memory, so that memory is behind a bus',
  );
  vote(vram !== null && gtt !== null && vram > 0 && gtt >= 8 * vram, 2, 'GTT is 8 times its VRAM or more');
  vote(vram !== null && vram <= 512 * MIB, 2, 'its VRAM is no larger than a small carve-out');
  vote(
    vram !== null && gtt !== null && vram > 0 && gtt >= 2 * vram && gtt < 8 * vram,
    0.5,
    'GTT is at least twice its VRAM',
  );
  vote(signals.pciClass?.startsWith('0380') === true, 1, 'its PCI class is that of recent APUs');
  vote(vram !== null && vram >= 512 * MIB && isCarveOutSize(vram), 0.5, 'its VRAM is a round carve-out size');
  vote(
    vram !== null && vram > 0 && vram % CARVE_OUT_STEP !== 0,
    -3,
    'its VRAM is no carve-out size: the card keeps some for its firmware',
  );
  const score = votes.reduce((sum, entry) => sum + entry.weight, 0);
  const memory = score > 1 ? 'unified' : 'discrete';
  const reasons = votes
    .filter((entry) => (memory === 'unified' ? entry.weight > 0 : entry.weight < 0))
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
    .map((entry) => entry.why);
  return {
    memory,
    reasons: reasons.length > 0 ? reasons : ['nothing points to memory shared with the system'],
    overridden: false,
  };
}

/** Firmware carves out powers of two and multiples of 16 GiB; discrete cards lose some to their firmware. */
function isCarveOutSize(bytes: number): boolean {
  return Number.isInteger(Math.log2(bytes / MIB)) || bytes % (16 * GIB) === 0;
}
