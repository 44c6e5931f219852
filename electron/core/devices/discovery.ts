import type { DeviceKind } from '../../../shared/state.ts';
import { type CardSysfs, memoryKindSignals, parseAmdSysfs } from './amdgpu-sysfs.ts';
import { decideMemoryKind } from './apu.ts';
import { drivesDisplay, readConnectors } from './display.ts';
import { type KfdNode, readKfdNodes } from './kfd.ts';
import { isTegraHost } from './nvidia-memory.ts';
import { cardName } from './pci-names.ts';
import { parsePciAddress } from './quantity.ts';
import type { CardFacts } from './reader.ts';
import type { SysTree } from './sysfs.ts';
import { shortName } from './wording.ts';

const DRM = '/sys/class/drm';
const PCI = '/sys/bus/pci/devices';

export type MemoryOverrides = Readonly<Record<string, 'discrete' | 'unified'>>;

/**
 * Every GPU of the machine, by PCI address, without waking one. Card numbers shift between boots
 * and card0 may be the firmware's framebuffer, so numbers are only a way to the address. Nodes that
 * are on no PCI bus or have no driver that models run on (simpledrm, virtio, ast) are left out.
 */
export function discoverCards(tree: SysTree, overrides: MemoryOverrides = {}): readonly CardFacts[] {
  const cards = new Map<string, CardFacts>();
  const kfd = readKfdNodes(tree);
  for (const entry of tree.list(DRM)) {
    if (!/^card\d+$/.test(entry)) continue;
    const path = `${DRM}/${entry}`;
    const card = parseAmdSysfs(quietly(tree), path);
    const facts = factsOf(tree, path, card, sharesNodeWithCpu(kfd, card), overrides);
    if (facts !== null) cards.set(facts.id, facts);
  }
  // NVIDIA's driver has card nodes only with modesetting; the PCI bus lists its cards always.
  for (const entry of tree.list('/sys/bus/pci/drivers/nvidia')) {
    const pciAddress = parsePciAddress(entry);
    if (pciAddress === null || cards.has(`pci:${pciAddress}`)) continue;
    const path = `${PCI}/${entry}`;
    const card = parseAmdSysfs(quietly(tree), path);
    const facts = factsOf(tree, path, { ...card, driver: 'nvidia', pciAddress }, null, overrides);
    if (facts !== null) cards.set(facts.id, facts);
  }
  return [...cards.values()].sort((a, b) => a.id.localeCompare(b.id));
}

/** One card at a path the settings name (`/sys/class/drm/card1[/device]`, `/sys/bus/pci/devices/…`); null when there is no usable card. */
export function discoverAt(tree: SysTree, path: string, overrides: MemoryOverrides = {}): CardFacts | null {
  const onBus = parsePciAddress(/^\/sys\/bus\/pci\/devices\/([^/]+)\/?$/.exec(path)?.[1]);
  if (onBus !== null) return discoverCards(tree, overrides).find((card) => card.pciAddress === onBus) ?? null;
  const cardPath = path.replace(/\/$/, '').replace(/\/device$/, '');
  const card = parseAmdSysfs(quietly(tree), cardPath);
  return factsOf(tree, cardPath, card, sharesNodeWithCpu(readKfdNodes(tree), card), overrides);
}

function sharesNodeWithCpu(nodes: readonly KfdNode[], card: CardSysfs): boolean | null {
  return nodes.find((node) => node.pciAddress === card.pciAddress)?.sharesNodeWithCpu ?? null;
}

/** A tree that never answers the files whose reading would wake a card or restart its sleep timer. */
function quietly(tree: SysTree): SysTree['readText'] {
  return (path) => (/\/gpu_busy_percent$/.test(path) ? null : tree.readText(path));
}

function factsOf(
  tree: SysTree,
  path: string,
  card: CardSysfs,
  sharesNode: boolean | null,
  overrides: MemoryOverrides,
): CardFacts | null {
  const { pciAddress } = card;
  const kind = kindOf(card);
  if (pciAddress === null || kind === null) return null;
  const id = `pci:${pciAddress}`;
  const notes: string[] = [];
  let memory: 'discrete' | 'unified';
  if (kind === 'amdgpu') {
    const signals = memoryKindSignals(card, {
      hasNorthBridgeRail: hasNorthBridgeRail(tree, path),
      sharesNodeWithCpu: sharesNode,
    });
    const decided = decideMemoryKind(signals, overrides[id] ?? null);
    memory = decided.memory;
    if (memory === 'unified') notes.push(`Shares the system’s memory: ${decided.reasons[0] ?? ''}.`);
  } else {
    // Intel puts its integrated graphics at device 2 of the root bus, always.
    const integrated = kind === 'intel' && /^[0-9a-f]{4}:00:02\./.test(pciAddress);
    memory = overrides[id] ?? (integrated ? 'unified' : 'discrete');
  }
  return {
    id,
    kind,
    name: shortName(nameOf(tree, card, kind, pciAddress)),
    pciAddress,
    path,
    memory,
    ...(overrides[id] === undefined ? {} : { memorySetting: overrides[id] }),
    drivesDisplay: drivesDisplay(readConnectors(tree, path), {
      bootVga: card.bootVga,
      kernelModesetting: kind !== 'nvidia',
    }),
    maySuspend: card.powerControl === 'auto',
    notes,
  };
}

function kindOf(card: CardSysfs): DeviceKind | null {
  switch (card.driver) {
    case 'amdgpu':
      return 'amdgpu';
    case 'nvidia':
    case 'nvidia-drm':
      return 'nvidia';
    case 'i915':
    case 'xe':
      return 'intel';
    case 'nouveau':
      return 'nouveau';
    default:
      return null;
  }
}

function hasNorthBridgeRail(tree: SysTree, path: string): boolean | null {
  const base = `${path}/device/hwmon`;
  const entries = tree.list(base);
  if (entries.length === 0) return null;
  const labels = entries.flatMap((entry) =>
    ['in0_label', 'in1_label'].flatMap((file) => tree.readText(`${base}/${entry}/${file}`)?.trim() ?? []),
  );
  // Sensors that can't be read say nothing.
  return labels.length === 0 ? null : labels.includes('vddnb');
}

function nameOf(tree: SysTree, card: CardSysfs, kind: DeviceKind, pciAddress: string): string {
  if (kind === 'nvidia') {
    const model = tree.readText(`/proc/driver/nvidia/gpus/${pciAddress}/information`);
    const name = /^Model:\s*(.+)$/m.exec(model ?? '')?.[1]?.trim();
    if (name !== undefined && !/^unknown$/i.test(name)) return name;
  }
  return cardName(tree.readText, card.vendorId, card.deviceId);
}

/** A Jetson's GPU is on no PCI bus: `nvidia,tegra…` in the device tree. Its model name, or null. */
export function tegraModel(tree: SysTree): string | null {
  if (!isTegraHost(tree)) return null;
  return tree.readText('/proc/device-tree/model')?.replaceAll('\0', '').trim() || 'NVIDIA Jetson';
}
