import { LlamaLog } from '../../engine/child/llama-log.ts';

/** Of llama-server's lines since build 7000: its time and its level. */
const STAMP = /^[\d.]+ [A-Z] +/;

/**
 * What a router's log says of why its last load of a model failed; null: nothing that tells. It names the
 * port of each server it starts, and writes that before all that it says (tools/server/server-models.cpp).
 */
export function whyInLog(lines: readonly string[], model: string): string | null {
  const spawned = ` instance with name=${model} on port `;
  const at = lines.findLastIndex((line) => line.includes(spawned));
  const port = lines[at]?.split(spawned)[1]?.trim() ?? '';
  if (!/^\d+$/.test(port)) return null;
  const log = new LlamaLog();
  const prefix = `[${port}] `;
  for (const line of lines.slice(at)) {
    if (line.startsWith(prefix)) log.take(line.slice(prefix.length).replace(STAMP, ''));
  }
  const why = log.why('');
  return why === '' ? null : why;
}

/** An error in llama-server's words. */
const ERROR = /^[\d.]+ E +/;
const LAST_LINES = 40;
/** What the log holds of ours, and what stands before each run (keeper-child.ts). */
const OURS = '[landlord ';
const STARTING = /^\[landlord [^\]]*\] starting /;

/** Of a server that has ended: the line of its last run that says why, else its last one; null: it logged nothing. */
export function lastWords(lines: readonly string[]): string | null {
  const from = lines.findLastIndex((line) => STARTING.test(line));
  const run = lines
    .slice(from + 1)
    .filter((line) => !line.startsWith(OURS))
    .slice(-LAST_LINES);
  const last = run.findLast((line) => line.trim() !== '');
  if (last === undefined) return null;
  const log = new LlamaLog();
  for (const line of run) if (ERROR.test(line)) log.take(line.replace(ERROR, ''));
  return log.why(last.replace(STAMP, '').trim());
}
