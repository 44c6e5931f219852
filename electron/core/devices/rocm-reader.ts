import { readPower } from './amdgpu-sysfs.ts';
import { decideMemoryKind } from './apu.ts';
import { backOff } from './back-off.ts';
import { parseMemInfo } from './meminfo.ts';
import { plausibleBytes } from './quantity.ts';
import {
  type CardFacts,
  type DeviceReader,
  emptySample,
  type Reading,
  SUSPENDED_NOTE,
  shouldLeaveAlone,
} from './reader.ts';
import { parseRocmSmi, type RocmCard } from './rocm-smi.ts';
import type { DeviceSample } from './sample.ts';
import type { SysTree } from './sysfs.ts';
import type { ToolRun } from './tool-run.ts';
import { apuPool } from './unified.ts';

/** rocm-smi is a Python program: a run takes a good part of a second. */
export const ROCM_SMI_PERIOD_MS = 2000;
export const ROCM_SMI_ARGS = [
  ...['--showmeminfo', 'vram', 'gtt'],
  ...['--showuse', '--showbus', '--showproductname', '--json'],
];

/**
 * AMD cards through rocm-smi, for where sysfs can't be read. `cards` are those known from sysfs; a
 * card only rocm-smi lists (a container) is taken as well. A machine without rocm-smi gives no
 * devices and no trouble. Between runs the last reading stands with its own time.
 */
export function rocmReader(
  tree: SysTree,
  cards: readonly CardFacts[],
  run: (args: readonly string[]) => Promise<ToolRun>,
): DeviceReader {
  let last: Reading = NOTHING;
  let running = false;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  const retry = backOff(ROCM_SMI_PERIOD_MS, 60_000);

  const takeIn = (answer: ToolRun, askedAtMs: number): void => {
    const report = parseRocmSmi(answer.output);
    if (answer.exitCode === 0 && report.cards.length > 0) {
      retry.worked();
      const devices = report.cards.map((row) => sampleOf(tree, cards, row, report.lowPower, askedAtMs));
      last = { devices, processes: [], troubles: [] };
      return;
    }
    retry.failed(askedAtMs);
    const isSilent = answer.exitCode === 0 || /is not installed$/.test(answer.output);
    last = isSilent ? NOTHING : { ...NOTHING, troubles: [troubleOf(answer)] };
  };

  return {
    read: (request) => {
      // It touches every card, so one that sleeps or may sleep keeps it from being run.
      const resting = cards.some(
        (card) => readPower(tree.readText, card.path) === 'suspended' || shouldLeaveAlone(card, request),
      );
      if (resting) return NOTHING;
      if (!running && request.nowMs >= nextAtMs && retry.due(request.nowMs)) {
        running = true;
        nextAtMs = request.nowMs + ROCM_SMI_PERIOD_MS;
        void run(ROCM_SMI_ARGS)
          .then((answer) => takeIn(answer, request.nowMs))
          .finally(() => {
            running = false;
          });
      }
      return last;
    },
    close: () => {},
  };
}

const NOTHING: Reading = { devices: [], processes: [], troubles: [] };

function troubleOf({ exitCode, output }: ToolRun): Reading['troubles'][number] {
  const what = exitCode === null ? 'rocm-smi gave no answer' : `rocm-smi ended with code ${exitCode}`;
  const said = output.trim().split('\n')[0]?.slice(0, 200) ?? '';
  return {
    code: exitCode === null ? 'rocm-smi-no-answer' : `rocm-smi-exit-${exitCode}`,
    message: `${what}${said === '' ? '' : ` (${said})`}: run it in a terminal to see why. It is tried again by itself.`,
    deviceId: null,
  };
}

function sampleOf(
  tree: SysTree,
  cards: readonly CardFacts[],
  row: RocmCard,
  lowPower: boolean,
  atMs: number,
): DeviceSample {
  const known = cards.find((card) => card.pciAddress === row.pciAddress);
  const card = known ?? unlistedCard(row);
  const memory = memoryOf(known, row);
  const empty = { ...emptySample({ ...card, memory }, 'rocm-smi', atMs, ROCM_SMI_PERIOD_MS) };
  // Which of the cards sleeps it does not say, and what it prints for one that does is no figure.
  if (lowPower) return { ...empty, power: 'suspended', notes: [...card.notes, SUSPENDED_NOTE] };
  const vramUsedBytes = plausibleBytes(row.vramUsedBytes, row.vramTotalBytes);
  const gttUsedBytes = plausibleBytes(row.gttUsedBytes, row.gttTotalBytes);
  const shared: DeviceSample = {
    ...empty,
    power: 'active',
    busyPercent: row.busyPercent,
    gttTotalBytes: row.gttTotalBytes,
    gttUsedBytes,
  };
  if (row.vramTotalBytes === null) {
    return { ...shared, error: `rocm-smi does not tell the memory of ${card.name}: update ROCm.` };
  }
  if (memory === 'unified') {
    const host = parseMemInfo(tree.readText('/proc/meminfo') ?? '');
    const pool = apuPool({ ...row, vramUsedBytes, gttUsedBytes }, host);
    return { ...shared, ...pool, hostAvailableBytes: host.availableBytes };
  }
  return {
    ...shared,
    totalBytes: row.vramTotalBytes,
    usedBytes: vramUsedBytes,
    freeBytes: vramUsedBytes === null ? null : row.vramTotalBytes - vramUsedBytes,
  };
}

/** sysfs may have told the card's ids without its memory; rocm-smi's figures add what it lacked. */
function memoryOf(known: CardFacts | undefined, row: RocmCard): 'discrete' | 'unified' {
  if (known?.memorySetting !== undefined) return known.memorySetting;
  if (known?.memory === 'unified') return 'unified';
  return decideMemoryKind({
    vendorId: '1002',
    deviceId: row.deviceId,
    pciClass: null,
    vramTotalBytes: row.vramTotalBytes,
    visibleVramTotalBytes: row.visibleVramTotalBytes,
    gttTotalBytes: row.gttTotalBytes,
    vramVendor: null,
    hasMemBusy: null,
    hasNorthBridgeRail: null,
    sharesNodeWithCpu: null,
  }).memory;
}

function unlistedCard(row: RocmCard): CardFacts {
  return {
    id: row.pciAddress === null ? `rocm:${row.key}` : `pci:${row.pciAddress}`,
    kind: 'amdgpu',
    name: row.name ?? `AMD GPU 1002:${row.deviceId ?? '????'}`,
    pciAddress: row.pciAddress ?? '',
    path: '',
    memory: 'discrete',
    drivesDisplay: null,
    maySuspend: false,
    notes: [],
  };
}

/**
 * Cards that sysfs reads, with rocm-smi standing in for those it can't: no memory files, no right to
 * read them. A card that is gone or sleeps is not asked for.
 */
export function withRocmFallback(readers: readonly DeviceReader[], rocm: DeviceReader): DeviceReader {
  return {
    read: async (request) => {
      const readings: Reading[] = [];
      for (const reader of readers) readings.push(await reader.read(request));
      const needed = readings.some(({ troubles }) => troubles.some(isUnreadable));
      if (!needed) return joined(readings);
      const other = await rocm.read(request);
      const swapped = readings.map((reading): Reading => {
        const good = reading.troubles.some(isUnreadable)
          ? other.devices.find(({ id, error }) => id === reading.devices[0]?.id && error === null)
          : undefined;
        if (good === undefined) return reading;
        return {
          ...reading,
          devices: [{ ...good, drivesDisplay: reading.devices[0]?.drivesDisplay ?? null }],
          troubles: [],
        };
      });
      return joined([...swapped, { ...NOTHING, troubles: other.troubles }]);
    },
    close: () => {
      for (const reader of [...readers, rocm]) reader.close();
    },
  };
}

function isUnreadable(trouble: { readonly code: string }): boolean {
  return trouble.code === 'amdgpu-unreadable';
}

function joined(readings: readonly Reading[]): Reading {
  return {
    devices: readings.flatMap(({ devices }) => devices),
    processes: readings.flatMap(({ processes }) => processes),
    troubles: readings.flatMap(({ troubles }) => troubles),
  };
}
