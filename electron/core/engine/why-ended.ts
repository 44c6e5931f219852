import type { ProcessEnd } from './engine-process.ts';

/** Why a child ended, as a clause without a full stop. */
export function whyEnded(end: ProcessEnd): string {
  const said = lastLine(end.lastWords);
  const detail = said === null ? '' : `: ${said}`;
  if (end.signal === 'SIGKILL') return 'it was killed, by the kernel for want of memory or by somebody';
  // What it said last is of something else: a fault in reading a mapped file comes without a word.
  if (end.signal === 'SIGBUS')
    return 'a file that it had mapped was cut short or its disk failed (SIGBUS): see that the model files are whole';
  if (end.signal === 'SIGABRT') return `llama.cpp gave up${detail}`;
  if (end.signal !== null) return `it crashed with ${end.signal}${detail}`;
  if (end.code === null) return `its process could not be started${detail}`;
  return `its process ended with code ${end.code}${detail}`;
}

const MOST_CHARS = 200;
/** Of our own log's lines. */
const STAMP = /^\d{4}-\d\d-\d\dT\S+Z /;

function lastLine(text: string): string | null {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .map((line) => line.replace(STAMP, ''))
    .filter((line) => line !== '');
  // An abort says what failed, then lists frames.
  const said = lines.find((line) => line.includes('GGML_ASSERT')) ?? lines.at(-1);
  return said === undefined ? null : said.slice(0, MOST_CHARS).replace(/\.$/, '');
}
