import type { DeviceSample, SamplerTrouble } from './sample.ts';

/** Longest name of a device; menus and table cells have no room for more. */
export const LONGEST_NAME = 60;

/** A device's name on one line, cut at a word where there is one near the end; `fallback` for an empty one. */
export function shortName(name: string, fallback = 'GPU'): string {
  const line = name.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  if (line === '') return fallback;
  const letters = [...line];
  if (letters.length <= LONGEST_NAME) return line;
  const head = letters.slice(0, LONGEST_NAME - 1).join('');
  const space = head.lastIndexOf(' ');
  return `${(space > LONGEST_NAME / 2 ? head.slice(0, space) : head).replace(/[\s,;:([{-]+$/, '')}…`;
}

/** The text as a sentence: other sentences follow it in notices. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed === '' || /[.!?…]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** A sample as it leaves the sampler: a name that fits, an error that ends. */
export function wordedSample(sample: DeviceSample): DeviceSample {
  return {
    ...sample,
    name: shortName(sample.name),
    error: sample.error === null ? null : sentence(sample.error),
  };
}

export function wordedTrouble(trouble: SamplerTrouble): SamplerTrouble {
  return { ...trouble, message: sentence(trouble.message) };
}
