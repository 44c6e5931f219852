/** Dates and times as the reader's own country writes them. Pure but for the locale and the time zone. */

/** `14:05`, `2:05 PM`; on another day with its date. `locale` undefined: the reader's. */
export function momentText(atMs: number, nowMs: number, locale?: string): string {
  const at = new Date(atMs);
  if (Number.isNaN(at.getTime())) return '';
  const time = at.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });
  if (at.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${at.toLocaleDateString(locale, { day: '2-digit', month: '2-digit' })} ${time}`;
}

/** With seconds: a reading's own moment. */
export function exactText(atMs: number, locale?: string): string {
  return new Date(atMs).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** As much as tells the ticks of an axis of this length apart. */
export function axisTime(atMs: number, spanMs: number, locale?: string): string {
  const at = new Date(atMs);
  if (spanMs > 2 * 86_400_000) return at.toLocaleDateString(locale, { weekday: 'short', day: '2-digit' });
  const seconds = spanMs < 3 * 60_000 ? ({ second: '2-digit' } as const) : {};
  return at.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit', ...seconds });
}
