import { type LandlordEvent, type Severity, severityOf } from '../../shared/events.ts';
import { paint, plain, type Terminal, type Tone } from './terminal.ts';

const TONES: Readonly<Partial<Record<Severity, Tone>>> = {
  critical: 'bad',
  warning: 'warning',
  notice: 'bold',
};

/** `09:00:01  evicted  The reason.`, the day before the time unless it is today. */
export function eventLine(event: LandlordEvent, nowMs: number, look: Pick<Terminal, 'color'>): string {
  const kind = plain(event.kind).padEnd(16);
  const tone = TONES[severityOf(event.kind)];
  const model =
    event.model === undefined || event.reason.includes(event.model) ? '' : `${plain(event.model)}: `;
  return `${timeText(event.at, nowMs)}  ${tone === undefined ? kind : paint(look, tone, kind)}  ${model}${plain(event.reason)}`;
}

function timeText(at: string, nowMs: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return plain(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return date.toDateString() === new Date(nowMs).toDateString() ? time : `${day} ${time}`;
}
