import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Result } from '../../../shared/errors.ts';
import type { Settings } from '../../../shared/settings.ts';
import type { ConfigRejection } from './rejection.ts';

/** Reads a config and makes its schema, wherever the YAML and schema libraries are loaded. */
export interface ConfigReader {
  parse(text: string, fileName: string, home: string | null): Promise<Result<Settings, ConfigRejection>>;
  schemaText(): Promise<string>;
}

export type ReaderRequest =
  | { readonly type: 'parse'; readonly text: string; readonly fileName: string; readonly home: string | null }
  | { readonly type: 'schema' };

export type ReaderAnswer =
  | { readonly type: 'parse'; readonly result: Result<Settings, ConfigRejection> }
  | { readonly type: 'schema'; readonly text: string };

const CHILD_LIMIT_MS = 20_000;

/** Loads the libraries here, on first use, for good. */
export const readHere: ConfigReader = {
  async parse(text, fileName, home) {
    const { parseSettings } = await import('./parse-settings.ts');
    return parseSettings(text, fileName, home);
  },
  async schemaText() {
    const { jsonSchemaText } = await import('./json-schema.ts');
    return jsonSchemaText();
  },
};

/**
 * Loads them in a child that ends with its answer. A config changes once a week, and the two libraries
 * stay in memory for good: 20 MB measured in Node 24, 0.5 MB this way (a worker thread gives none of it
 * back). Where the child fails, the work is done here.
 */
export function readInChild(nodePath: string): ConfigReader {
  return {
    async parse(text, fileName, home) {
      const answer = await askChild(nodePath, { type: 'parse', text, fileName, home });
      return answer?.type === 'parse' ? answer.result : readHere.parse(text, fileName, home);
    },
    async schemaText() {
      const answer = await askChild(nodePath, { type: 'schema' });
      return answer?.type === 'schema' ? answer.text : readHere.schemaText();
    },
  };
}

/** null when the child can't be run or answers something else. */
function askChild(nodePath: string, request: ReaderRequest): Promise<ReaderAnswer | null> {
  return new Promise((resolve) => {
    const entry = fileURLToPath(new URL('./config-reader-child.ts', import.meta.url));
    // Without a descriptor left there is a child with no streams, and an error follows.
    const child: ChildProcess = spawn(nodePath, [entry], {
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: CHILD_LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    let answer = '';
    child.once('error', () => resolve(null));
    child.stdin?.once('error', () => resolve(null));
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      answer += chunk;
    });
    child.once('close', (code) => resolve(code === 0 ? readAnswer(answer) : null));
    child.stdin?.end(JSON.stringify(request));
  });
}

/** The child is this very program, so only a cut-off answer is looked for. */
function readAnswer(text: string): ReaderAnswer | null {
  try {
    const answer: ReaderAnswer = JSON.parse(text);
    return answer;
  } catch {
    return null;
  }
}
