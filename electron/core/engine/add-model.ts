import { parseDocument } from 'yaml';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import { settingsToYamlPatch } from '../settings/yaml-patch.ts';

export interface ModelAdded {
  /** The config's text from now on. */
  readonly text: string;
  /** `backend/model`, as the gateway knows it. */
  readonly id: string;
  /** The file that had this name before; null: none. */
  readonly before: string | null;
}

/** What backends and requests can be named by without quotes or a second slash. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const ENGINE = 'embedded';

/**
 * The config with one model more for the embedded engine, everything else of it kept as it was written.
 * `text` null: there is no config yet. Errors: `bad_input`.
 */
export function withEmbeddedModel(text: string | null, name: string, file: string): Result<ModelAdded> {
  if (!NAME.test(name)) {
    return fail(
      'bad_input',
      `${name} is no name for a model: take letters, digits, dots, dashes and underscores.`,
    );
  }
  const document = parseDocument(text ?? '', { prettyErrors: false });
  if (document.errors.length > 0) {
    return fail('bad_input', 'The config is not YAML at present, so nothing was changed; mend it first.');
  }
  const backends: unknown = field(document.toJS(), 'backends');
  if (backends != null && !Array.isArray(backends)) {
    return fail('bad_input', 'backends is no list in the config, so nothing was changed; mend it first.');
  }
  const list: readonly unknown[] = backends ?? [];
  const at = list.findIndex((one) => field(one, 'kind') === ENGINE);
  if (at < 0 && list.some((one) => field(one, 'name') === ENGINE)) {
    return fail(
      'bad_input',
      `Another backend is called ${ENGINE} in the config; give it another name first, or add one of kind ${ENGINE} yourself.`,
    );
  }
  const engine = list[at];
  const before = field(field(engine, 'models'), name);
  const made = { name: ENGINE, kind: ENGINE, models: { [name]: file } };
  const patched =
    at >= 0
      ? settingsToYamlPatch(text ?? '', ['backends', at, 'models', name], file)
      : backends == null
        ? settingsToYamlPatch(text ?? '', ['backends'], [made])
        : settingsToYamlPatch(text ?? '', ['backends', list.length], made);
  if (!patched.ok) return patched;
  const backend = field(engine, 'name');
  return ok({
    text: patched.value,
    id: `${typeof backend === 'string' ? backend : ENGINE}/${name}`,
    before: typeof before === 'string' ? before : null,
  });
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
