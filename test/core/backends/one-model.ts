import type { ObservedModel } from '../../../electron/core/backends/backend.ts';
import { until } from '../../support/router.ts';
import type { Reply } from './servers/server.ts';
import { SUBJECTS, type Subject, type Watched, watch } from './subjects.ts';

const LIMIT_MS = 15_000;

export function subject(title: string): Subject {
  const found = SUBJECTS.find((one) => one.title === title);
  if (found === undefined) throw new Error(`no subject ${title}`);
  return found;
}

/** The first model that is watched. */
export const only = (it: Watched): ObservedModel | undefined => it.backend.snapshot().models[0];
export const seen = (what: string, holds: () => boolean): Promise<void> => until(holds, LIMIT_MS, what);

/** A server that answers these paths, and no others. */
export async function instead(
  title: string,
  replies: Readonly<Record<string, Reply>>,
  asked: string[] = [],
): Promise<Watched> {
  const one = subject(title);
  return await watch(one, {
    timings: { acceptMs: 10_000 },
    before: (server) => {
      server.instead = ({ method, path }) => {
        asked.push(`${method} ${path}`);
        return replies[path] ?? (path === '/api/version' ? { body: { version: '1' } } : one.notFound);
      };
    },
  });
}
