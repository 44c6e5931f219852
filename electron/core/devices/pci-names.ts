import type { ReadText } from './sysfs.ts';

const PCI_IDS = ['/usr/share/misc/pci.ids', '/usr/share/hwdata/pci.ids', '/var/lib/pciutils/pci.ids'];

/**
 * Name of a PCI device in the pci.ids format: vendors at the margin, devices one tab in.
 * Ids are lower-case hex without `0x`.
 */
export function pciName(text: string, vendorId: string, deviceId: string): string | null {
  const vendorAt = text.startsWith(`${vendorId}  `) ? 0 : text.indexOf(`\n${vendorId}  `) + 1;
  if (vendorAt === 0 && !text.startsWith(`${vendorId}  `)) return null;
  for (let at = text.indexOf('\n', vendorAt) + 1; at > 0 && at < text.length; ) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    if (line.startsWith(`\t${deviceId}  `)) return line.slice(deviceId.length + 3).trim();
    if (line !== '' && !line.startsWith('\t') && !line.startsWith('#')) return null;
    if (end < 0) return null;
    at = end + 1;
  }
  return null;
}

/** A card's name for people: `Navi 21 [Radeon RX 6900 XT]` becomes `AMD Radeon RX 6900 XT`; else `AMD GPU 1002:73bf`. */
export function cardName(readText: ReadText, vendorId: string | null, deviceId: string | null): string {
  const maker =
    vendorId === '1002' ? 'AMD' : vendorId === '8086' ? 'Intel' : vendorId === '10de' ? 'NVIDIA' : '';
  const fallback = `${maker === '' ? '' : `${maker} `}GPU ${vendorId ?? '????'}:${deviceId ?? '????'}`;
  if (vendorId === null || deviceId === null) return fallback;
  for (const path of PCI_IDS) {
    const found = pciName(readText(path) ?? '', vendorId, deviceId);
    if (found !== null) {
      const marketing = /\[([^\]]+)\]\s*$/.exec(found)?.[1] ?? found;
      return maker === '' || marketing.startsWith(maker) ? marketing : `${maker} ${marketing}`;
    }
  }
  return fallback;
}

/** `AMD GPU 1002:73bf`: nobody could say more. */
export function isFallbackName(name: string): boolean {
  return /GPU [0-9a-f?]{4}:[0-9a-f?]{4}$/.test(name);
}
