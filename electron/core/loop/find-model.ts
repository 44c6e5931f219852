import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { ModelView } from './model-view.ts';

/**
 * The model a person or a program means: `backend/model`, or a bare name or alias that only one
 * backend has. `down` names the backends that do not answer now. Errors: unknown_model with what there is, or with the candidates.
 */
export function findModel(
  views: readonly ModelView[],
  wanted: string,
  down: readonly string[] = [],
): Result<ModelView> {
  const exact = views.find((view) => view.id === wanted);
  if (exact !== undefined) return ok(exact);
  const named = views.filter(
    (view) => view.observed.name === wanted || view.observed.aliases.includes(wanted),
  );
  const [only] = named;
  if (only !== undefined && named.length === 1) return ok(only);
  if (named.length > 1)
    return fail(
      'unknown_model',
      `Several backends have ${wanted}: say ${list(
        named.map((view) => view.id),
        'or',
      )}.`,
    );
  const away =
    down.length === 0 ? '' : ` ${list(down, 'and')} ${down.length === 1 ? 'does' : 'do'} not answer now.`;
  const known = views.slice(0, 8).map((view) => view.id);
  return fail(
    'unknown_model',
    known.length === 0
      ? `There is no model ${wanted}: no backend answers.${away} \`landlord status\` says which are watched.`
      : `There is no model ${wanted}. There ${views.length === 1 ? 'is' : 'are'} ${list(known, 'and')}${views.length > known.length ? ` and ${views.length - known.length} more` : ''}.${away}`,
  );
}

function list(words: readonly string[], joiner: 'and' | 'or'): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${joiner} ${words.at(-1)}`;
}
