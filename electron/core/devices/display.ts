import type { SysTree } from './sysfs.ts';

export interface Connector {
  /** `DP-1`, `eDP-1`. */
  readonly name: string;
  readonly connected: boolean | null;
  readonly enabled: boolean | null;
}

/** Connectors of `/sys/class/drm/card1`: its entries `card1-DP-1` … with `status` and `enabled`. */
export function readConnectors(tree: SysTree, cardPath: string): readonly Connector[] {
  const card = cardPath.slice(cardPath.lastIndexOf('/') + 1);
  return tree
    .list(cardPath)
    .filter((entry) => entry.startsWith(`${card}-`) && !entry.includes('Writeback'))
    .map((entry) => ({
      name: entry.slice(card.length + 1),
      connected: word(tree.readText(`${cardPath}/${entry}/status`), 'connected', 'disconnected'),
      enabled: word(tree.readText(`${cardPath}/${entry}/enabled`), 'enabled', 'disabled'),
    }));
}

/**
 * Whether a monitor hangs on a card. A connector that is connected and enabled says yes; one that
 * is connected while another card's are enabled does not, so `connected` alone is only believed
 * where `enabled` can't be read. `listed` false: the directory gave no connectors at all, which is
 * a compute card for the in-kernel drivers and says nothing for NVIDIA without modesetting.
 */
export function drivesDisplay(
  connectors: readonly Connector[],
  hint: { readonly bootVga: boolean | null; readonly kernelModesetting: boolean },
): boolean | null {
  if (connectors.length === 0) return hint.kernelModesetting ? false : null;
  if (connectors.some((entry) => entry.connected === true && entry.enabled !== false)) return true;
  // A blanked monitor is disabled but still connected: the boot display keeps its mark.
  if (hint.bootVga === true && connectors.some((entry) => entry.connected === true)) return true;
  return connectors.every((entry) => entry.connected === null) ? null : false;
}

function word(text: string | null, yes: string, no: string): boolean | null {
  const value = text?.trim();
  return value === yes ? true : value === no ? false : null;
}
