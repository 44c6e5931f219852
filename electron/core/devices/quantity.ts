/**
 * Figures as drivers print them: `596 MiB`, `16376`, `8 %`, `[N/A]`, `Not Supported`, `ERR!`.
 * Whatever is not a figure is unknown and reads as null, never as 0 (rule 5).
 */
const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  b: 1,
  bytes: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
  // Vendors' tools write KB, MB and GB for the binary units.
  kb: 1024,
  mb: 1024 ** 2,
  gb: 1024 ** 3,
  tb: 1024 ** 4,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
};

export const KIB = 1024;
export const MIB = 1024 ** 2;
export const GIB = 1024 ** 3;

/**
 * No device has this much memory: 1 PiB. NVML's "value not available" is 2^64−1 bytes, which
 * tools print as 17179869184 GiB or 17592186044415 MiB.
 */
const ABSURD_BYTES = 1024 ** 5;

/** Bytes of `596 MiB`, `0`, `12 KiB`; a bare figure is in `bareUnit` bytes. null: not a figure, negative or absurd. */
export function parseBytes(text: string | null | undefined, bareUnit = 1): number | null {
  if (text === null || text === undefined) return null;
  const found = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$/.exec(text);
  if (found === null) return null;
  const unit = (found[2] ?? '').toLowerCase();
  const scale = unit === '' ? bareUnit : BYTES_PER_UNIT[unit];
  if (scale === undefined) return null;
  return plausibleBytes(Math.round(Number(found[1]) * scale));
}

/** A percentage between 0 and 100, with or without the sign; null otherwise. */
export function parsePercent(text: string | null | undefined): number | null {
  if (text === null || text === undefined) return null;
  const found = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(text);
  if (found === null) return null;
  const value = Number(found[1]);
  return value <= 100 ? value : null;
}

/** A non-negative whole number and nothing else; null otherwise. */
export function parseCount(text: string | null | undefined): number | null {
  if (text === null || text === undefined || !/^\s*\d+\s*$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

/** Drops "not available" sentinels and figures larger than any device, or than the device they are of. */
export function plausibleBytes(bytes: number | null, totalBytes: number | null = null): number | null {
  if (bytes === null || !Number.isFinite(bytes) || bytes < 0 || bytes >= ABSURD_BYTES) return null;
  return totalBytes !== null && bytes > totalBytes ? null : bytes;
}

/** Text, or null where the driver says it has none. */
export function parseWord(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  const word = text.trim();
  return word === '' || isUnknownWord(word) ? null : word;
}

/** `Enabled`, `Yes`, `On` → true; `Disabled`, `No`, `Off` → false; anything else is unknown. */
export function parseSwitch(text: string | null | undefined): boolean | null {
  const word = (text ?? '').trim().toLowerCase();
  if (word === 'enabled' || word === 'yes' || word === 'on') return true;
  if (word === 'disabled' || word === 'no' || word === 'off') return false;
  return null;
}

function isUnknownWord(word: string): boolean {
  return /^\[?(n\/?a|not supported|not available|unknown error|insufficient permissions|unknown|err!|gpu is lost|gpu requires reset|not found|function not found|no permission|requested functionality has been deprecated|deprecated\b.*)\]?$/i.test(
    word,
  );
}

/** `00000000:01:00.0`, `0000:01:00.0`, `01:00.0` → `0000:01:00.0`; null when it is none of these. */
export function parsePciAddress(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  const found = /^\s*(?:([0-9a-f]{4,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])\s*$/i.exec(text);
  if (found === null) return null;
  const domain = Number.parseInt(found[1] ?? '0', 16)
    .toString(16)
    .padStart(4, '0');
  const part = (value: string | undefined): string => (value ?? '0').toLowerCase().padStart(2, '0');
  return `${domain}:${part(found[2])}:${part(found[3])}.${found[4] ?? '0'}`;
}
