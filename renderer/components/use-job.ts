import { useRef, useState } from 'react';
import type { Result } from '../../shared/errors.ts';

export type Job =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running' }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string };

/** One thing at a time that a person asked for, and how it went. */
export function useJob(): readonly [Job, (work: () => Promise<Result<unknown>>) => void, () => void] {
  const [job, setJob] = useState<Job>({ kind: 'idle' });
  const latest = useRef(0);
  const run = (work: () => Promise<Result<unknown>>): void => {
    latest.current += 1;
    const mine = latest.current;
    setJob({ kind: 'running' });
    void work().then((result) => {
      if (mine === latest.current)
        setJob(result.ok ? { kind: 'done' } : { kind: 'failed', message: result.error.message });
    });
  };
  return [job, run, () => setJob({ kind: 'idle' })];
}
