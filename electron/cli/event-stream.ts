import type { LandlordEvent } from '../../shared/events.ts';
import { http } from '../core/node-http.ts';
import type { FoundRuntime } from '../core/state-dir/discover-runtime.ts';
import { isEvent } from './runtime-client.ts';

/** An SSE reader (WHATWG HTML §9.2.6) that keeps what is not a whole line yet; `data` fields only. */
export function createSseParser(onData: (data: string) => void): (chunk: string) => void {
  let rest = '';
  let data: string[] = [];
  return (chunk) => {
    const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) onData(data.join('\n'));
        data = [];
      } else if (line.startsWith('data:')) {
        data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      }
    }
  };
}

/** The stream says something every 15 s; silence longer than this is a lost connection. */
const SILENCE_MS = 45_000;

/**
 * Hands on each event after `afterId`; resolves when the stream ends, with whether it had begun.
 * null: from now on.
 */
export function followEvents(
  runtime: FoundRuntime,
  afterId: number | null,
  onEvent: (event: LandlordEvent) => void,
): Promise<boolean> {
  return new Promise((resolve) => {
    const headers: Record<string, string> = {
      authorization: `Bearer ${runtime.token}`,
      accept: 'text/event-stream',
      ...(afterId === null ? {} : { 'last-event-id': String(afterId) }),
    };
    const request = http.get(`${runtime.url}/api/events`, { agent: false, headers }, (answer) => {
      const begun = answer.statusCode === 200;
      const parse = createSseParser((data) => {
        const event = parseEvent(data);
        if (event !== null) onEvent(event);
      });
      answer.setEncoding('utf8');
      if (begun) answer.on('data', parse);
      else answer.resume();
      answer.on('error', () => resolve(begun));
      answer.on('close', () => resolve(begun));
    });
    request.setTimeout(SILENCE_MS, () => request.destroy());
    request.on('error', () => resolve(false));
  });
}

function parseEvent(data: string): LandlordEvent | null {
  try {
    const value: unknown = JSON.parse(data);
    return isEvent(value) ? value : null;
  } catch {
    return null;
  }
}
