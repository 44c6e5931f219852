import type { MemoryKindSignals } from './apu.ts';
import { parseCount, parsePciAddress, parsePercent, plausibleBytes } from './quantity.ts';
import type { ReadText } from './sysfs.ts';

/**
 * What `/sys/class/drm/cardN/device` says of a card: the kernel's "GPU sysfs" files of amdgpu
 * (Documentation/gpu/amdgpu/driver-misc.rst) and of the PCI core. Bytes; absent is null.
 */
export interface CardSysfs {
  readonly driver: string | null;
  readonly pciAddress: string | null;
  /** Lower-case hex without `0x`. */
  readonly vendorId: string | null;
  readonly deviceId: string | null;
  /** Six hex digits. */
  readonly pciClass: string | null;
  readonly bootVga: boolean | null;
  readonly power: 'active' | 'suspended' | 'unknown';
  /** `auto`: runtime power management may suspend it. */
  readonly powerControl: 'auto' | 'on' | null;
  readonly vramTotalBytes: number | null;
  readonly vramUsedBytes: number | null;
  readonly visibleVramTotalBytes: number | null;
  readonly visibleVramUsedBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
  readonly vramVendor: string | null;
  readonly busyPercent: number | null;
  readonly memBusyPercent: number | null;
}

/** `cardPath` is `/sys/class/drm/card1`, or its `device` folder. Reads everything, the static facts too. */
export function parseAmdSysfs(readText: ReadText, cardPath: string): CardSysfs {
  const base = devicePath(cardPath);
  const text = (name: string): string | null => readText(`${base}/${name}`)?.trim() ?? null;
  const event = parseUevent(readText(`${base}/uevent`) ?? '');
  const ids = (event.PCI_ID ?? '').toLowerCase().split(':');
  const classWord = hex(text('class')) ?? event.PCI_CLASS?.toLowerCase() ?? null;
  const bootVga = text('boot_vga');
  const control = text('power/control');
  return {
    driver: event.DRIVER ?? null,
    pciAddress: parsePciAddress(event.PCI_SLOT_NAME),
    vendorId: hex(text('vendor')) ?? (ids[0] || null),
    deviceId: hex(text('device')) ?? ids[1] ?? null,
    pciClass: classWord?.padStart(6, '0') ?? null,
    bootVga: bootVga === '1' ? true : bootVga === '0' ? false : null,
    powerControl: control === 'auto' || control === 'on' ? control : null,
    vramVendor: vendorName(text('mem_info_vram_vendor')),
    visibleVramTotalBytes: readBytes(text('mem_info_vis_vram_total')),
    visibleVramUsedBytes: readBytes(text('mem_info_vis_vram_used')),
    memBusyPercent: parsePercent(text('mem_busy_percent')),
    power: readPower(readText, base),
    ...readAmdMemory(readText, base),
  };
}

export interface AmdMemory {
  readonly vramTotalBytes: number | null;
  readonly vramUsedBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
  readonly busyPercent: number | null;
}

/** The files that change, for the hot path. A use larger than its total was not read whole: unknown. */
export function readAmdMemory(readText: ReadText, cardPath: string): AmdMemory {
  const base = devicePath(cardPath);
  const text = (name: string): string | null => readText(`${base}/${name}`)?.trim() ?? null;
  const vramTotalBytes = readBytes(text('mem_info_vram_total'));
  const gttTotalBytes = readBytes(text('mem_info_gtt_total'));
  return {
    vramTotalBytes,
    vramUsedBytes: plausibleBytes(readBytes(text('mem_info_vram_used')), vramTotalBytes),
    gttTotalBytes,
    gttUsedBytes: plausibleBytes(readBytes(text('mem_info_gtt_used')), gttTotalBytes),
    busyPercent: parsePercent(text('gpu_busy_percent')),
  };
}

/**
 * Runtime power state, which may be asked without waking the card: `power/runtime_status` is kept
 * by the PM core (Documentation/ABI/testing/sysfs-devices-power), `power_state` by the PCI core.
 */
export function readPower(readText: ReadText, cardPath: string): CardSysfs['power'] {
  const base = devicePath(cardPath);
  const status = readText(`${base}/power/runtime_status`)?.trim();
  if (status === 'suspended' || status === 'suspending') return 'suspended';
  if (status === 'active' || status === 'resuming') return 'active';
  const state = readText(`${base}/power_state`)?.trim();
  if (state === 'D3hot' || state === 'D3cold') return 'suspended';
  return state === 'D0' ? 'active' : 'unknown';
}

/** Lines `KEY=value` of a `uevent` file. */
export function parseUevent(text: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const at = line.indexOf('=');
    if (at > 0) fields[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return fields;
}

/** The facts `decideMemoryKind` weighs; `extra` are those that lie outside the device's folder. */
export function memoryKindSignals(
  card: CardSysfs,
  extra: {
    readonly hasNorthBridgeRail: boolean | null;
    readonly sharesNodeWithCpu: boolean | null;
  } = { hasNorthBridgeRail: null, sharesNodeWithCpu: null },
): MemoryKindSignals {
  return {
    vendorId: card.vendorId,
    deviceId: card.deviceId,
    pciClass: card.pciClass,
    vramTotalBytes: card.vramTotalBytes,
    visibleVramTotalBytes: card.visibleVramTotalBytes,
    gttTotalBytes: card.gttTotalBytes,
    vramVendor: card.vramVendor,
    hasMemBusy: card.memBusyPercent === null ? null : true,
    ...extra,
  };
}

/** A card without a card node has its PCI device's own folder for a path: `device` in it is a file. */
export function devicePath(cardPath: string): string {
  const path = cardPath.replace(/\/+$/, '');
  const isDevice = path.endsWith('/device') || path.startsWith('/sys/bus/pci/devices/');
  return isDevice ? path : `${path}/device`;
}

/** A sysfs figure is digits alone; anything else was not read whole or is an error text. */
function readBytes(text: string | null): number | null {
  return plausibleBytes(parseCount(text));
}

function hex(text: string | null): string | null {
  const found = /^0x([0-9a-f]+)$/i.exec(text ?? '');
  return found?.[1]?.toLowerCase() ?? null;
}

function vendorName(text: string | null): string | null {
  return text !== null && /^[\w .-]+$/.test(text) ? text : null;
}
