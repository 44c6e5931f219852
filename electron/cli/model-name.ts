import { fail, ok, type Result } from '../../shared/errors.ts';
import { nearest } from '../core/settings/did-you-mean.ts';

/**
 * The id a person means: `backend/model` as it is, or the model's name alone where one backend has it.
 * Errors: `unknown_model`; `bad_input` with the candidates when several have it.
 */
export function resolveModelName(given: string, ids: readonly string[]): Result<string> {
  if (ids.includes(given)) return ok(given);
  const candidates = ids.filter((id) => nameOf(id) === given);
  const [only, ...others] = candidates;
  if (only !== undefined && others.length === 0) return ok(only);
  if (only !== undefined) {
    return fail('bad_input', `Several backends have ${given}; say which: ${candidates.join(', ')}.`);
  }
  if (ids.length === 0) return fail('unknown_model', `There is no model ${given}: no backend lists any yet.`);
  const close = nearest(given, [...ids, ...ids.map(nameOf)]);
  const hint = close === null ? '`landlord models` lists them.' : `Did you mean ${close}?`;
  return fail('unknown_model', `There is no model ${given}. ${hint}`);
}

/** A model's own name may hold slashes; a backend's never does. */
function nameOf(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}
