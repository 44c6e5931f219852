import { stripSourceLines } from '../../electron/core/devices/capture-text.ts';
import {
  parseBytes,
  parseCount,
  parsePciAddress,
  parsePercent,
  plausibleBytes,
} from '../../electron/core/devices/quantity.ts';
import { isRecord, jsonObjectsIn } from '../../electron/core/devices/rocm-smi.ts';

export interface AmdgpuTopProcess {
  readonly pid: number;
  readonly name: string | null;
  readonly vramBytes: number | null;
  readonly gttBytes: number | null;
}

/** A card as `amdgpu_top --json` describes it; bytes. */
export interface AmdgpuTopCard {
  readonly name: string | null;
  readonly pciAddress: string | null;
  readonly vramTotalBytes: number | null;
  readonly vramUsedBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
  readonly busyPercent: number | null;
  /** Sum over the processes it could read; never the card's whole use. */
  readonly fdinfoVramBytes: number | null;
  readonly fdinfoGttBytes: number | null;
  /** `APU` in its info block, where it has one. */
  readonly isApu: boolean | null;
  readonly processes: readonly AmdgpuTopProcess[];
}

/** One line of the stream, one card, or the whole document with `devices`. Exact bytes win over rounded MiB. */
export function parseAmdgpuTop(text: string): readonly AmdgpuTopCard[] {
  return jsonObjectsIn(stripSourceLines(text)).flatMap((value) => {
    const devices = value.devices;
    const rows: readonly unknown[] = Array.isArray(devices) ? devices : [value];
    return rows.filter(isRecord).map(cardOf);
  });
}

type Json = Readonly<Record<string, unknown>>;

function cardOf(card: Json): AmdgpuTopCard {
  const info = section(card, 'Info');
  const vram = section(card, 'VRAM');
  const total = section(card, 'Total fdinfo');
  const gfx = section(card, 'gpu_activity');
  const apu = info['GPU Type'] ?? info.Type;
  const flag = info.APU ?? info.is_apu;
  return {
    name: text(card.DeviceName) ?? text(info.DeviceName),
    pciAddress: parsePciAddress(text(info.PCI) ?? text(card.PCI)),
    vramTotalBytes: bytes(info['VRAM Size']) ?? amount(vram['Total VRAM']),
    vramUsedBytes: bytes(info['VRAM Usage Size']) ?? amount(vram['Total VRAM Usage']),
    gttTotalBytes: bytes(info['GTT Size']) ?? amount(vram['Total GTT']),
    gttUsedBytes: bytes(info['GTT Usage Size']) ?? amount(vram['Total GTT Usage']),
    busyPercent: percent(gfx.GFX),
    fdinfoVramBytes: amount(total.VRAM),
    fdinfoGttBytes: amount(total.GTT),
    isApu: typeof flag === 'boolean' ? flag : typeof apu === 'string' ? /apu/i.test(apu) : null,
    processes: processesOf(section(card, 'fdinfo')),
  };
}

function processesOf(fdinfo: Json): readonly AmdgpuTopProcess[] {
  const found: AmdgpuTopProcess[] = [];
  for (const [key, value] of Object.entries(fdinfo)) {
    const pid = parseCount(key);
    if (pid === null || !isRecord(value)) continue;
    // Some versions nest the figures in `usage`, some in `usage.usage`.
    let usage = section(value, 'usage');
    if (isRecord(usage.usage)) usage = usage.usage;
    found.push({ pid, name: text(value.name), vramBytes: amount(usage.VRAM), gttBytes: amount(usage.GTT) });
  }
  return found;
}

function section(from: Json, name: string): Json {
  const value = from[name];
  return isRecord(value) ? value : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function bytes(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? plausibleBytes(value) : null;
}

/** `{ "unit": "MiB", "value": 460 }`. */
function amount(value: unknown): number | null {
  if (!isRecord(value) || typeof value.value !== 'number') return null;
  return parseBytes(`${value.value} ${text(value.unit) ?? ''}`);
}

function percent(value: unknown): number | null {
  return isRecord(value) && typeof value.value === 'number' ? parsePercent(String(value.value)) : null;
}
