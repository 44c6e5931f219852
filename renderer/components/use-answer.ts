import { useCallback, useEffect, useRef, useState } from 'react';
import type { LandlordError } from '../../shared/errors.ts';
import type { AnswerOf, ArgsOf, QuestionName } from '../../shared/ipc-schema.ts';
import { useModel } from './context.ts';

export interface Answered<T> {
  /** The last answer there was; kept while a newer one is waited for. null: none yet. */
  readonly value: T | null;
  /** Why the last question was refused; null: it was not. */
  readonly error: LandlordError | null;
  readonly waiting: boolean;
  again(): void;
}

/** Asks when the arguments change, and again every `everyMs` while the page is shown. `args` null: not at all. */
export function useAnswer<Name extends QuestionName>(
  name: Name,
  args: ArgsOf<Name> | null,
  everyMs: number | null = null,
): Answered<AnswerOf<Name>> {
  const { ask } = useModel();
  const [value, setValue] = useState<AnswerOf<Name> | null>(null);
  const [error, setError] = useState<LandlordError | null>(null);
  const [waiting, setWaiting] = useState(args !== null);
  const key = args === null ? null : JSON.stringify(args);
  const latest = useRef({ args, turn: 0 });
  latest.current.args = args;
  const again = useCallback(() => {
    const wanted = latest.current.args;
    if (wanted === null) return;
    latest.current.turn += 1;
    const { turn } = latest.current;
    setWaiting(true);
    void ask(name, wanted).then((answer) => {
      // One that was overtaken says nothing.
      if (turn !== latest.current.turn) return;
      setWaiting(false);
      setError(answer.ok ? null : answer.error);
      if (answer.ok) setValue(answer.value);
    });
  }, [ask, name]);
  useEffect(() => {
    if (key === null) return;
    again();
    if (everyMs === null) return;
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs, again]);
  return { value, error, waiting, again };
}
