import { stripSourceLines } from './capture-text.ts';
import { parseBytes, parsePciAddress, parsePercent, parseWord } from './quantity.ts';

/** A card as rocm-smi describes it; bytes, null where it does not tell. */
export interface RocmCard {
  /** `card0`. Not the kernel's card number. */
  readonly key: string;
  readonly name: string | null;
  /** Lower-case hex without `0x`. */
  readonly deviceId: string | null;
  readonly pciAddress: string | null;
  readonly vramTotalBytes: number | null;
  readonly vramUsedBytes: number | null;
  readonly visibleVramTotalBytes: number | null;
  readonly visibleVramUsedBytes: number | null;
  readonly gttTotalBytes: number | null;
  readonly gttUsedBytes: number | null;
  readonly busyPercent: number | null;
}

export interface RocmReport {
  readonly cards: readonly RocmCard[];
  /** A card is runtime-suspended, so figures printed beside this may be its carve-out's or none. */
  readonly lowPower: boolean;
  readonly driverVersion: string | null;
}

/**
 * Output of `rocm-smi` as JSON (`--json`), CSV (`--csv`) or `GPU[0] : key: value` lines, or several
 * of them one after another; warnings before and after are not part of the answer. Key names vary
 * by release only in capitals and in those not read here.
 */
export function parseRocmSmi(text: string): RocmReport {
  const body = stripSourceLines(text);
  const fields = new Map<string, Map<string, string>>();
  const put = (card: string, key: string, value: string): void => {
    const row = fields.get(card) ?? new Map<string, string>();
    row.set(key.trim().toLowerCase(), value);
    fields.set(card, row);
  };
  for (const json of jsonObjectsIn(body)) {
    for (const [card, row] of Object.entries(json)) {
      if (!isRecord(row)) continue;
      for (const [key, value] of Object.entries(row)) {
        if (typeof value === 'string' || typeof value === 'number') put(card, key, String(value));
      }
    }
  }
  readCsv(body, put);
  for (const [, index, key, value] of body.matchAll(/^GPU\[(\d+)\]\s*:\s*([^:\n]+?)\s*:\s*(.*)$/gm)) {
    put(`card${index ?? '0'}`, key ?? '', value ?? '');
  }
  return {
    cards: [...fields].filter(([key]) => /^card\d+$/.test(key)).map(([key, row]) => cardOf(key, row)),
    lowPower: /low-power state/i.test(body),
    driverVersion: parseWord(fields.get('system')?.get('driver version')),
  };
}

function cardOf(key: string, row: ReadonlyMap<string, string>): RocmCard {
  const bytes = (name: string): number | null => parseBytes(row.get(`${name} memory (b)`));
  return {
    key,
    name: nameOf(row.get('card series')) ?? nameOf(row.get('device name')),
    // `Card model` was the board's own (subsystem) id before ROCm 6.
    deviceId: hexId(row.get('device id')) ?? hexId(row.get('gpu id')) ?? hexId(row.get('card model')),
    pciAddress: parsePciAddress(row.get('pci bus')),
    vramTotalBytes: bytes('vram total'),
    vramUsedBytes: bytes('vram total used'),
    visibleVramTotalBytes: bytes('vis_vram total'),
    visibleVramUsedBytes: bytes('vis_vram total used'),
    gttTotalBytes: bytes('gtt total'),
    gttUsedBytes: bytes('gtt total used'),
    busyPercent: parsePercent(row.get('gpu use (%)')),
  };
}

/** Rows under a header that begins with `device`; a surplus of cells belongs to the card's or vendor's name. */
function readCsv(body: string, put: (card: string, key: string, value: string) => void): void {
  let header: readonly string[] = [];
  for (const line of body.split('\n')) {
    if (/^device,/i.test(line)) {
      header = line.trim().split(',');
      continue;
    }
    if (header.length === 0 || !/^card\d+,/.test(line)) continue;
    const cells = line.trim().split(',');
    const surplus = Math.max(0, cells.length - header.length);
    const free = header.findIndex((name) => /^card (series|vendor)$/i.test(name));
    const joined =
      surplus > 0 && free >= 0
        ? [
            ...cells.slice(0, free),
            cells.slice(free, free + surplus + 1).join(','),
            ...cells.slice(free + surplus + 1),
          ]
        : cells;
    header.forEach((name, at) => {
      const value = joined[at];
      if (at > 0 && value !== undefined) put(cells[0] ?? '', name, value);
    });
  }
}

/** Every top-level `{…}` in a text that is valid JSON; whatever stands around them is stepped over. */
export function jsonObjectsIn(text: string): readonly Readonly<Record<string, unknown>>[] {
  const found: Readonly<Record<string, unknown>>[] = [];
  let depth = 0;
  let start = -1;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"' && depth > 0) inString = true;
    else if (char === '{') {
      if (depth === 0) start = at;
      depth += 1;
    } else if (char === '}' && depth > 0) {
      depth -= 1;
      if (depth === 0) {
        const value = parseJson(text.slice(start, at + 1));
        if (isRecord(value)) found.push(value);
      }
    }
  }
  return found;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Without its list of names it prints a number in place of one: `0x1002`. */
function nameOf(text: string | undefined): string | null {
  const word = parseWord(text);
  return word === null || /^0x[0-9a-f]+$/i.test(word) ? null : word;
}

function hexId(text: string | undefined): string | null {
  return /^\s*0x([0-9a-f]{4})\s*$/i.exec(text ?? '')?.[1]?.toLowerCase() ?? null;
}
