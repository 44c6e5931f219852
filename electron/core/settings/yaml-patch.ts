import { parseDocument } from 'yaml';
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
