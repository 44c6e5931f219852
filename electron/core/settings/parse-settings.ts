import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  type YAMLError,
} from 'yaml';
import { ok, type Result } from '../../../shared/errors.ts';
import type { Settings } from '../../../shared/settings.ts';
import { crossCheck } from './cross-checks.ts';
import { defaults } from './defaults.ts';
import { plainIssues } from './issues.ts';
import { type ConfigProblem, type ConfigRejection, keyText, rejection } from './rejection.ts';
import { configSchema } from './schema.ts';
import { toSettings } from './to-settings.ts';

/** A config is a page of text; anything larger is some other file. */
export const CONFIG_MAX_CHARS = 256 * 1024;

/**
 * Reads the YAML of design §5.6. An empty text is the defaults.
 *
 * @param fileName as problems are to name it
 * @param home what `~/` in paths stands for; null leaves it as written
 */
export function parseSettings(
  text: string,
  fileName: string,
  home: string | null = null,
): Result<Settings, ConfigRejection> {
  const reject = (problems: readonly ConfigProblem[]) =>
    ({ ok: false, error: rejection(fileName, problems) }) as const;
  if (text.length > CONFIG_MAX_CHARS) {
    return reject([
      whole(`this is larger than ${CONFIG_MAX_CHARS / 1024} KiB, so it is hardly a config; check the path`),
    ]);
  }
  if (text.includes('\0'))
    return reject([whole('this is not a text file; write the config as YAML in UTF-8')]);

  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  if (!Array.isArray(documents)) return ok(defaults());
  const [document, second] = documents;
  if (document === undefined) return ok(defaults());

  const at = (offset: number, key: string, message: string): ConfigProblem => {
    const place = lines.linePos(Math.min(offset, text.length));
    return { line: Math.max(1, place.line), column: Math.max(1, place.col), key, message };
  };
  if (document.errors.length > 0) {
    return reject(document.errors.map((error) => at(error.pos[0], '', yamlSentence(error))));
  }
  if (second !== undefined) {
    const start = second.range[0];
    return reject([at(start, '', 'a second document begins here; remove the --- line, or all below it')]);
  }

  const stray = strayAlias(document);
  if (stray !== null) return reject([at(stray, '', BAD_ALIAS)]);

  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 50 });
  } catch {
    return reject([whole('its anchors and aliases can not be followed; write the values out')]);
  }
  if (value === null || value === undefined) return ok(defaults());

  const place = (path: readonly (string | number)[], ofKey: boolean, message: string) =>
    at(offsetOf(document, path, ofKey), keyText(path), message);

  const checked = configSchema.safeParse(value);
  if (!checked.success) {
    return reject(
      plainIssues(checked.error.issues).map((issue) => place(issue.path, issue.ofKey, issue.message)),
    );
  }
  const settings = toSettings(checked.data, home);
  const crossed = crossCheck(settings);
  return crossed.length === 0
    ? ok(settings)
    : reject(crossed.map((problem) => place(problem.path, false, problem.message)));
}

const BAD_ALIAS = 'a text that begins with * or & means an alias; put it in quotes';

/** Where an alias stands that no anchor explains. */
function strayAlias(document: Document.Parsed): number | null {
  let offset: number | null = null;
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.resolve(document) !== undefined) return undefined;
      offset = startOf(alias);
      return visit.BREAK;
    },
  });
  return offset;
}

function whole(message: string): ConfigProblem {
  return { line: 1, column: 1, key: '', message };
}

/** Where the value (or its key) at this path stands in the text; for a missing one, what should hold it. */
function offsetOf(document: Document.Parsed, path: readonly (string | number)[], ofKey: boolean): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => String(isScalar(item.key) ? item.key.value : item.key) === String(part),
      );
      if (pair === undefined) return offset;
      const keyOffset = startOf(pair.key);
      if (ofKey && index === path.length - 1) return keyOffset ?? offset;
      node = pair.value;
      offset = startOf(node) ?? keyOffset ?? offset;
    } else if (isSeq(node)) {
      node = typeof part === 'number' ? node.items[part] : undefined;
      offset = startOf(node) ?? offset;
    } else {
      return offset;
    }
  }
  return offset;
}

function startOf(node: unknown): number | null {
  return isNode(node) && node.range ? node.range[0] : null;
}

/** Own sentences: the library's quote the text around an error, where a secret may stand. */
function yamlSentence(error: YAMLError): string {
  switch (error.code) {
    case 'DUPLICATE_KEY':
      return 'this key stands here twice; keep one of the two';
    case 'TAB_AS_INDENT':
      return 'a tab indents this line; YAML indents with spaces';
    case 'BAD_INDENT':
      return 'this is not indented like its neighbours, or a bracket before it is not closed';
    case 'MISSING_CHAR':
      return 'a closing quote, bracket or comma is missing; look at this line and the one before it';
    case 'UNEXPECTED_TOKEN':
      return 'this was not expected here; put texts with : # { } [ ] , & * ! | > % @ in quotes';
    case 'BAD_ALIAS':
      return BAD_ALIAS;
    case 'BAD_SCALAR_START':
      return 'a text can not begin with this character; put it in quotes';
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
    case 'KEY_OVER_1024_CHARS':
      return 'a key must be one short line followed by a colon; look for a stray colon, or put the text in quotes';
    case 'BAD_DQ_ESCAPE':
      return 'this backslash in double quotes means nothing; use single quotes, or \\\\';
    case 'BLOCK_IN_FLOW':
      return 'a list or mapping in brackets can not go on as an indented block; close the bracket first';
    case 'MULTIPLE_ANCHORS':
    case 'MULTIPLE_TAGS':
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_DIRECTIVE':
      return 'YAML tags, directives and repeated anchors are not understood here; remove this one';
    default:
      return 'this is not YAML; compare it with the example in the documentation';
  }
}
