import { isMap, isNode, isScalar, parseDocument } from 'yaml';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';

/** First line of a config that we create: editors then check it against the schema beside it. */
export const SCHEMA_HINT = '# yaml-language-server: $schema=config.schema.json\n';

/**
 * The text with one value changed and everything a person wrote beside it (comments, order, quotes)
 * kept. `undefined` removes the key. The result is not checked against the schema: parse it before use.
 *
 * Errors: `bad_input` for a text that is not YAML, or a path that leads through something else than
 * mappings and lists.
 */
export function settingsToYamlPatch(
  text: string,
  path: readonly (string | number)[],
  value: unknown,
): Result<string> {
  if (path.length === 0) return fail('bad_input', 'No setting was named; name one such as floor.');
  const document = parseDocument(text.trim() === '' ? SCHEMA_HINT : text, { prettyErrors: false });
  if (document.errors.length > 0) {
    return fail('bad_input', 'The config is not YAML at present, so nothing was changed; mend it first.');
  }
  try {
    if (value === undefined) document.deleteIn(path);
    else document.setIn(path, value);
    return ok(document.toString({ lineWidth: 0, flowCollectionPadding: true }));
  } catch (error) {
    return fail(
      'bad_input',
      `${path.join('.')} can't be set, because what stands above it is a single value (${messageOf(error)}); ` +
        'set that one instead.',
    );
  }
}

/**
 * The text with one key (`floor`, `floor.keep`) set to a piece of YAML, written as it was typed. What stands
 * around it is kept; a comment behind the old value stays behind the new one. null takes the key out.
 * Not checked against the schema. Errors: `bad_input`, where either is not YAML.
 */
export function withYamlAt(text: string, key: string, yaml: string | null): Result<string> {
  const path = key.split('.');
  if (yaml === null) return settingsToYamlPatch(text, path, undefined);
  const piece = parseDocument(yaml, { prettyErrors: false });
  const [wrong] = piece.errors;
  if (wrong !== undefined) return fail('bad_input', `This is not YAML: ${wrong.message}.`);
  const document = parseDocument(text.trim() === '' ? SCHEMA_HINT : text, { prettyErrors: false });
  if (document.errors.length > 0)
    return fail('bad_input', 'The config is not YAML at present, so nothing was changed; mend it first.');
  const before = document.getIn(path, true);
  const { contents } = piece;
  if (isScalar(before) && isScalar(contents)) before.value = contents.value;
  else {
    if (isNode(before) && isNode(contents)) {
      contents.comment ??= before.comment ?? null;
      contents.commentBefore ??= before.commentBefore ?? null;
    }
    if (path.length > 1 && !isMap(document.getIn(path.slice(0, -1), true)))
      return fail('bad_input', `${key} can't be set, because what stands above it is a single value.`);
    document.setIn(path, contents);
  }
  return ok(document.toString({ lineWidth: 0, flowCollectionPadding: true }));
}

/** Whether a mapping is written for a key (`floor`, `devices.0.floor`); false too where nothing can be read. */
export function isMappingAt(text: string, key: string): boolean {
  const document = parseDocument(text, { prettyErrors: false });
  return document.errors.length === 0 && isMap(document.getIn(key.split('.'), true));
}

/** What is written for a key of the top level, with its comments and as if it stood alone; null: nothing is. */
export function yamlAt(text: string, key: string): string | null {
  const document = parseDocument(text, { prettyErrors: false });
  if (document.errors.length > 0 || !isMap(document.contents)) return null;
  const node = document.contents.get(key, true);
  if (!isNode(node) || node.range == null || (isScalar(node) && node.value === null)) return null;
  const [from, to] = node.range;
  const column = from - (text.lastIndexOf('\n', from - 1) + 1);
  const alone = text.slice(text.lastIndexOf('\n', from - 1) + 1, from).trim() === '';
  const lines = text.slice(from, to).trimEnd().split('\n');
  return lines
    .map((line, index) => (index > 0 && alone ? line.replace(new RegExp(`^ {0,${column}}`), '') : line))
    .join('\n');
}
