import type { LandlordEvent } from '../../../shared/events.ts';

/** A syslog message beyond this is cut by many a daemon (RFC 5424, 6.1 has 2048; util-linux' logger takes 1024). */
const LINE_MAX_BYTES = 1000;

/**
 * One line for one event: `evicted router/qwen-27b: reason (freeBytes=…)`. Line breaks and other control
 * characters, which could forge a line of their own, are written out.
 */
export function syslogLine(event: LandlordEvent): string {
  const subject = event.model ?? event.backend;
  const numbers = Object.entries(event.numbers).map(([key, value]) => `${key}=${value ?? 'unknown'}`);
  const text = [
    `${event.kind}${subject === undefined ? '' : ` ${subject}`}: ${event.reason}`,
    numbers.length === 0 ? '' : ` (${numbers.join(' ')})`,
  ].join('');
  return cut(escapeControls(text), LINE_MAX_BYTES);
}

/** Controls, line separators, and marks that reorder text; a backslash too, so that what is written out is unambiguous. */
function escapeControls(text: string): string {
  return text.replace(/[\\\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    if (character === '\\') return '\\\\';
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

/** At most so many bytes of UTF-8, and no half character. */
function cut(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const mark = '…';
  const head = Buffer.from(text).subarray(0, maxBytes - Buffer.byteLength(mark));
  return `${head.toString('utf8').replace(/\uFFFD+$/, '')}${mark}`;
}
