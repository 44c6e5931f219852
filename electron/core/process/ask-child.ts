import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface ChildQuestion {
  /** Node to run the child with. */
  readonly nodePath: string;
  /** A file of this program that reads one JSON value from stdin and writes its answer, another, to stdout. */
  readonly entry: URL;
  readonly request: unknown;
  /** It is killed after so long. */
  readonly limitMs: number;
}

/** A child that hangs in the kernel outlives SIGKILL; it is waited for no longer. */
const LATEST_MS = 1_000;

/**
 * Asks a Node that ends with its answer, so that what it loads does not stay in memory here. null: it can
 * not be run, fails, or takes too long. The child is this very program, so of its answer only a cut-off one
 * is looked for.
 */
export function askChild<Answer>({
  nodePath,
  entry,
  request,
  limitMs,
}: ChildQuestion): Promise<Answer | null> {
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      // Without a descriptor left there is a child with no streams, and an error follows.
      child = spawn(nodePath, [fileURLToPath(entry)], {
        stdio: ['pipe', 'pipe', 'ignore'],
        timeout: limitMs,
        killSignal: 'SIGKILL',
      });
    } catch {
      // Without memory for another process, and for other rare reasons, `spawn` throws instead.
      return resolve(null);
    }
    let answer = '';
    const latest = setTimeout(() => resolve(null), limitMs + LATEST_MS).unref();
    child.once('error', () => resolve(null));
    child.stdin?.once('error', () => resolve(null));
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      answer += chunk;
    });
    child.once('close', (code) => {
      clearTimeout(latest);
      resolve(code === 0 ? parsed(answer) : null);
    });
    child.stdin?.end(JSON.stringify(request));
  });
}

function parsed<Answer>(text: string): Answer | null {
  try {
    const answer: Answer = JSON.parse(text);
    return answer;
  } catch {
    return null;
  }
}
