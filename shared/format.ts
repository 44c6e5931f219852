/** How the program writes figures for people; the same in the CLI, the tray and the window. */

/** `6.1 GB` (decimal, as vendors and the field write VRAM); null is `unknown`. */
export function formatBytes(bytes: number | null): string {
  if (bytes === null || !Number.isFinite(bytes)) return 'unknown';
  const sign = bytes < 0 ? '-' : '';
  const abs = Math.abs(bytes);
  if (abs >= 999.5e9) return `${sign}${(abs / 1e12).toFixed(1)} TB`;
  if (abs >= 99.95e9) return `${sign}${(abs / 1e9).toFixed(0)} GB`;
  if (abs >= 999.5e6) return `${sign}${(abs / 1e9).toFixed(1)} GB`;
  if (abs >= 999.5e3) return `${sign}${(abs / 1e6).toFixed(0)} MB`;
  if (abs >= 1000) return `${sign}${(abs / 1e3).toFixed(0)} kB`;
  return `${sign}${abs} B`;
}

/** `0.3 s`, `41 s`, `2 min`, `3 h`, `2 d`; null is `unknown`. */
export function formatDuration(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return 'unknown';
  const abs = Math.max(0, ms);
  if (abs < 1000) return abs < 100 ? `${Math.round(abs)} ms` : `${(abs / 1000).toFixed(1)} s`;
  if (abs < 9_950) return `${(abs / 1000).toFixed(1)} s`;
  if (abs < 119_500) return `${Math.round(abs / 1000)} s`;
  if (abs < 7_170_000) return `${Math.round(abs / 60_000)} min`;
  if (abs < 172_800_000) return `${Math.round(abs / 3_600_000)} h`;
  return `${Math.round(abs / 86_400_000)} d`;
}

/** `31 %`; null is `unknown`. */
export function formatPercent(share: number | null): string {
  return share === null || !Number.isFinite(share) ? 'unknown' : `${Math.round(share * 100)} %`;
}

/** `a, b and c`; of more than `most`, the first of them `and 4 others`. */
export function formatList(words: readonly string[], most = Number.POSITIVE_INFINITY): string {
  const rest = words.length - most;
  const shown = rest > 0 ? [...words.slice(0, most - 1), `${rest + 1} others`] : words;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
