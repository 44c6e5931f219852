import type { ModelView } from '../loop/model-view.ts';
import type { Conduct } from './caller.ts';

/** What came of a request, for its record. */
export interface Outcome {
  readonly route: 'local' | 'fallback' | 'refused';
  readonly backend: string | null;
  readonly reason: string | null;
  readonly status: number | null;
  readonly firstByteAtMs: number | null;
  readonly tail: string;
}

/** Who asks and how it wants to be served. */
export interface Asker {
  readonly name: string | null;
  readonly conduct: Conduct;
  /** It was sent down its chain to this backend: nobody is evicted for it. Called when it is about to be sent. */
  readonly onDeflected?: () => void;
}

export function modelOf(view: ModelView | null): { readonly model?: string } {
  return view === null ? {} : { model: view.id };
}
