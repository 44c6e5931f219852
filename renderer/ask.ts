/** Asks the runtime what its state does not hold, over HTTP or through the desktop app alike. */
import { fail, isErrorCode, ok, type Result } from '../shared/errors.ts';
import type { Bridge } from '../shared/ipc-bridge.ts';
import { type AnswerOf, type ArgsOf, type Ask, QUESTIONS, type QuestionName } from '../shared/ipc-schema.ts';
import { readOutcome } from './api.ts';
import { strings } from './strings.ts';

export function createHttpAsk(fetchFn: typeof fetch): Ask {
  return async <Name extends QuestionName>(
    name: Name,
    args: ArgsOf<Name>,
  ): Promise<Result<AnswerOf<Name>>> => {
    try {
      const response = await fetchFn(`/api/${QUESTIONS[name]}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(args),
      });
      const body: unknown = await response.json().catch(() => null);
      // The page and the runtime come from one build: what it answers has the question's own shape.
      if (response.ok && body !== null) return ok(body as AnswerOf<Name>);
      const outcome = readOutcome(false, body);
      if (outcome.ok) return fail('internal', strings.noAnswer);
      return fail(isErrorCode(outcome.code) ? outcome.code : 'internal', outcome.message, outcome.numbers);
    } catch {
      return fail('no_runtime', strings.noAnswer);
    }
  };
}

export function createIpcAsk({ call }: Bridge): Ask {
  return async <Name extends QuestionName>(
    name: Name,
    args: ArgsOf<Name>,
  ): Promise<Result<AnswerOf<Name>>> => {
    try {
      return await call[name](args);
    } catch {
      return fail('no_runtime', strings.noAnswer);
    }
  };
}
