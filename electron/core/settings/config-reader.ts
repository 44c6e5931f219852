import type { Result } from '../../../shared/errors.ts';
import type { Settings } from '../../../shared/settings.ts';
import { askChild } from '../process/ask-child.ts';
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
  const entry = new URL('./config-reader-child.ts', import.meta.url);
  const ask = (request: ReaderRequest): Promise<ReaderAnswer | null> =>
    askChild({ nodePath, entry, request, limitMs: CHILD_LIMIT_MS });
  return {
    async parse(text, fileName, home) {
      const answer = await ask({ type: 'parse', text, fileName, home });
      return answer?.type === 'parse' ? answer.result : readHere.parse(text, fileName, home);
    },
    async schemaText() {
      const answer = await ask({ type: 'schema' });
      return answer?.type === 'schema' ? answer.text : readHere.schemaText();
    },
  };
}
