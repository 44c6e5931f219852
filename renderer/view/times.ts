/** Dates and times as the reader's own country writes them. Pure but for the locale and the time zone. */

/** Making one costs more than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

function write(at: Date, locale: string | undefined, options: Intl.DateTimeFormatOptions): string {
  const key = JSON.stringify([locale, options]);
  let format = formats.get(key);
  if (format === undefined) {
    format = new Intl.DateTimeFormat(locale, options);
    formats.set(key, format);
  }
  return format.format(at);
}

const TIME = { hour: '2-digit', minute: '2-digit' } as const;

/** `14:05`, `2:05 PM`; on another day with its date. `locale` undefined: the reader's. */
export function momentText(atMs: number, nowMs: number, locale?: string): string {
  const at = new Date(atMs);
  if (Number.isNaN(at.getTime())) return '';
  const time = write(at, locale, TIME);
  if (at.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${write(at, locale, { day: '2-digit', month: '2-digit' })} ${time}`;
}

/** With seconds: a reading's own moment. */
export function exactText(atMs: number, locale?: string): string {
  return write(new Date(atMs), locale, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** As much as tells the ticks of an axis of this length apart. */
export function axisTime(atMs: number, spanMs: number, locale?: string): string {
  const at = new Date(atMs);
  if (spanMs > 60 * 86_400_000) return write(at, locale, { month: 'short', year: '2-digit' });
  if (spanMs > 2 * 86_400_000) return write(at, locale, { weekday: 'short', day: '2-digit' });
  return write(at, locale, spanMs < 3 * 60_000 ? { ...TIME, second: '2-digit' } : TIME);
}
