/** How the page writes figures: shared/format.ts, without a `.0` that says nothing. Pure. */
import { formatBytes, formatDuration } from '../../shared/format.ts';
import { momentText } from './times.ts';

/** `4 GB`, `4.1 GB` (or `4,1 GB`), `512 MB`; null is `unknown`. `locale` undefined: the reader's. */
export function bytesText(bytes: number | null, locale?: string): string {
  return formatBytes(bytes).replace('.0 ', ' ').replace('.', decimalMark(locale));
}

const marks = new Map<string | undefined, string>();

function decimalMark(locale: string | undefined): string {
  const known = marks.get(locale);
  if (known !== undefined) return known;
  const mark = (0.5).toLocaleString(locale, { numberingSystem: 'latn' }).replace(/\d/g, '') || '.';
  marks.set(locale, mark);
  return mark;
}

/** Rounded down, so that what is promised fits: `12 GB`, `4.1 GB`, `310 MB`. */
export function roomText(bytes: number): string {
  if (bytes >= 10e9) return `${Math.floor(bytes / 1e9)} GB`;
  if (bytes >= 1e9) return bytesText(Math.floor(bytes / 1e8) * 1e8);
  return bytesText(Math.floor(bytes / 1e7) * 1e7);
}

/** To the next tenth of a gigabyte, or ten megabytes: no less than was meant. */
export function roundedUp(bytes: number): number {
  const step = bytes < 1e9 ? 1e7 : 1e8;
  return Math.ceil(bytes / step) * step;
}

/** `0.3 s`, `41 s`, `2 min`. Below a second in tenths, so that it does not race. */
export function ageText(ageMs: number): string {
  if (ageMs < 950) return `${(Math.max(0, Math.round(ageMs / 100)) / 10).toFixed(1)} s`;
  return formatDuration(ageMs).replace('.0 s', ' s');
}

/** `8k`, `32k`, `900`. */
export function tokensText(tokens: number): string {
  return tokens >= 1000 ? `${Math.round(tokens / 1024)}k` : String(tokens);
}

/** As the reader's country writes it, on another day with its date. `locale` undefined: the reader's. */
export function timeText(iso: string, nowMs: number, locale?: string): string {
  return momentText(Date.parse(iso), nowMs, locale);
}

/** Epoch ms of an ISO time; null for none or an unreadable one. */
export function epochMs(iso: string | null): number | null {
  if (iso === null) return null;
  const ms = Date.parse(iso);
  return Number.isNaN(ms) ? null : ms;
}

/** `router/qwen-27b` → `qwen-27b`. */
export function shortName(modelId: string): string {
  const slash = modelId.indexOf('/');
  return slash < 0 ? modelId : modelId.slice(slash + 1);
}

/** `http://127.0.0.1:8080` → `127.0.0.1:8080`. */
export function hostOf(url: string): string {
  return url.replace(/^[a-z]+:\/\//i, '').replace(/\/.*$/, '');
}

/** `/home/ada/.config/vram-landlord/config.yaml` → `…/vram-landlord/config.yaml`: the end tells what it is. */
export function shortPaths(text: string): string {
  return text.replaceAll(/(?<![\w:/.])(?:~|\/[\w.@+-]+)(?:\/[\w.@+-]+){2,}/g, (path) => {
    if (path.length <= 32) return path;
    const parts = path.split('/');
    const two = parts.slice(-2).join('/');
    return `…/${two.length <= 28 ? two : (parts.at(-1) ?? two)}`;
  });
}

/** Keeps a figure and its unit on one line. */
export function glueUnits(text: string): string {
  return text.replaceAll(/(\d) (?=[kMGT]?B\b)/g, '$1\u00a0');
}
