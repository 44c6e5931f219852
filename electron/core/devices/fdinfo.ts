import { stripSourceLines } from './capture-text.ts';
import { parseBytes, parseCount, parsePciAddress } from './quantity.ts';

/**
 * One DRM client as `/proc/<pid>/fdinfo/<fd>` shows it: kernel Documentation/gpu/drm-usage-stats.rst.
 * Bytes; a region the driver does not print is null, which is not the same as 0.
 */
export interface DrmClient {
  readonly driver: string;
  /** `0000:03:00.0`; null for devices that are not on PCI. */
  readonly pciAddress: string | null;
  readonly clientId: number | null;
  /** `accel`: an NPU or another accelerator that answers the same keys; never counted as GPU memory. */
  readonly device: 'gpu' | 'accel';
  readonly vramBytes: number | null;
  /** Device memory that lies in system pages: `gtt`, `gart`, `system`, `memory`. */
  readonly gttBytes: number | null;
  /** Part of the above that others share too; contained in it, never to be added. */
  readonly sharedVramBytes: number | null;
  /** Moved out of VRAM by the driver (`amd-evicted-vram`). */
  readonly evictedVramBytes: number | null;
  /** The client has run work: some engine's time or cycles are above 0. */
  readonly usedEngine: boolean;
  /** Which family of names the figures are from; they name the same bytes, so only one is used. */
  readonly family: 'resident' | 'memory' | 'total' | 'none';
}

type Family = 'resident' | 'memory' | 'total' | 'shared';

/**
 * amdgpu's own words before there were common ones: Linux 5.14 to 5.18, Ubuntu 22.04's 5.15 among them
 * (amdgpu_fdinfo.c). Each opening of the card has a pasid of its own, which a fork shares.
 */
const OLD_AMDGPU: Readonly<Record<string, string>> = {
  pdev: 'drm-pdev',
  pasid: 'drm-client-id',
  'vram mem': 'drm-memory-vram',
  'gtt mem': 'drm-memory-gtt',
};

/** A client, or null when the text is no DRM descriptor's (or was cut before its driver line). */
export function parseFdinfo(text: string): DrmClient | null {
  const body = stripSourceLines(text);
  // Most descriptors are none of ours; this test is what makes scanning thousands of them cheap.
  const isOld = !body.includes('drm-driver') && body.includes('vram mem:');
  if (!isOld && !body.includes('drm-driver')) return null;
  let driver: string | null = isOld ? 'amdgpu' : null;
  let pciAddress: string | null = null;
  let clientId: number | null = null;
  let usedEngine = false;
  let evictedVramBytes: number | null = null;
  const regions: Record<Family, Map<string, number>> = {
    resident: new Map(),
    memory: new Map(),
    total: new Map(),
    shared: new Map(),
  };
  for (const line of body.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const word = line.slice(0, colon).trim();
    const key = isOld ? (OLD_AMDGPU[word] ?? word) : word;
    const value = line.slice(colon + 1).trim();
    if (key === 'drm-driver') driver = value;
    else if (key === 'drm-pdev') pciAddress = parsePciAddress(value);
    else if (key === 'drm-client-id') clientId = parseCount(value);
    else if (key === 'amd-evicted-vram') evictedVramBytes = parseBytes(value);
    else if (isOld ? value.endsWith('%') : /^drm-(engine|cycles)-(?!capacity-)/.test(key))
      usedEngine ||= Number.parseFloat(value) > 0;
    else {
      const found = /^drm-(resident|memory|total|shared)-(?!cycles-)(.+)$/.exec(key);
      const bytes = found === null ? null : parseBytes(value);
      if (found !== null && bytes !== null) regions[found[1] as Family].set(found[2] ?? '', bytes);
    }
  }
  if (driver === null || driver === '') return null;
  const family = (['resident', 'memory', 'total'] as const).find((name) => regions[name].size > 0) ?? 'none';
  const chosen = family === 'none' ? new Map<string, number>() : regions[family];
  return {
    driver,
    pciAddress,
    clientId,
    device: isAccelerator(driver) ? 'accel' : 'gpu',
    vramBytes: sumRegions(chosen, isVram),
    gttBytes: sumRegions(chosen, isSystemBacked),
    sharedVramBytes: sumRegions(regions.shared, isVram),
    evictedVramBytes,
    usedEngine,
    family,
  };
}

/** `vram`, `vram0` (amdgpu, xe, nouveau), `local0` (i915); a number names a tile or bank, each its own memory. */
function isVram(region: string): boolean {
  return /^(vram|local|lmem)\d*$/.test(region);
}

/** `gart` is nouveau's name. `cpu` (amdgpu) is left out: those pages are not reachable by the GPU until they are moved. */
function isSystemBacked(region: string): boolean {
  return /^(gtt|gart|system|memory)\d*$/.test(region);
}

function sumRegions(
  regions: ReadonlyMap<string, number>,
  belongs: (region: string) => boolean,
): number | null {
  let sum: number | null = null;
  for (const [region, bytes] of regions) if (belongs(region)) sum = (sum ?? 0) + bytes;
  return sum;
}

/** Drivers under drivers/accel, and out-of-tree NPU drivers, share the key names with GPUs. */
function isAccelerator(driver: string): boolean {
  return /accel|npu|vpu|xdna|habana|qaic|^rocket$|ethos/i.test(driver);
}
