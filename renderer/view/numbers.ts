/** The figures behind a refusal, as pairs of name and text. Pure. */
import { formatDuration } from '../../shared/format.ts';
import { bytesText } from './figures.ts';

const NAMES: Readonly<Record<string, string>> = {
  requestedBytes: 'asked for',
  freeBytes: 'free',
  floorBytes: 'floor',
  hardFloorBytes: 'hard floor',
  capBytes: 'cap',
  bookedBytes: 'booked',
  outstandingBytes: 'still loading',
  shortBytes: 'missing',
  totalBytes: 'in all',
};

/** Known names first and in this order; what is null is `unknown`, never left out. */
export function numberPairs(
  numbers: Readonly<Record<string, number | null>>,
): readonly { readonly name: string; readonly text: string }[] {
  const rank = (key: string): number => {
    const at = Object.keys(NAMES).indexOf(key);
    return at < 0 ? Number.POSITIVE_INFINITY : at;
  };
  return Object.entries(numbers)
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([key, value]) => ({ name: NAMES[key] ?? plainName(key), text: valueText(key, value) }));
}

function valueText(key: string, value: number | null): string {
  if (value === null) return 'unknown';
  if (key.endsWith('Bytes')) return bytesText(value);
  if (key.endsWith('Ms')) return formatDuration(value);
  return String(value);
}

/** `queuedRequests` → `queued requests`, without its unit. */
function plainName(key: string): string {
  return key
    .replace(/(?:Bytes|Ms)$/, '')
    .replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
}
