import { field } from './http.ts';
import { integerOf, positiveOf, type ReportedStatus, reportedStatus, textOf } from './models-list.ts';

/** One message of a router's `GET /models/sse` (tools/server/README.md). */
export type RouterEvent =
  | {
      readonly type: 'status';
      readonly model: string;
      readonly status: ReportedStatus;
      readonly statusText: string;
      /** 0–1 over all stages. */
      readonly progress: number | null;
      readonly contextTokens: number | null;
      readonly exitCode: number | null;
      readonly failed: boolean;
    }
  | { readonly type: 'removed'; readonly model: string }
  /** The list itself changed: read it anew. */
  | { readonly type: 'reload' };

/**
 * Reads one event's data. The first event of a load is named `model_status`, later ones
 * `status_change`; what counts is that a status is there, not the name. null: nothing in it for us.
 */
export function parseRouterEvent(data: string): RouterEvent | null {
  let body: unknown;
  try {
    body = JSON.parse(data);
  } catch {
    return null;
  }
  const model = textOf(field(body, 'model'));
  const event = textOf(field(body, 'event'));
  if (model === null) return null;
  if (model === '*' || event === 'models_reload') return { type: 'reload' };
  if (event === 'model_remove') return { type: 'removed', model };
  const details = field(body, 'data');
  const statusText = textOf(field(details, 'status')) ?? textOf(field(field(details, 'status'), 'value'));
  if (statusText === null) return null;
  return {
    type: 'status',
    model,
    status: reportedStatus(statusText),
    statusText,
    progress: statusText === 'loading' ? progressOf(field(details, 'progress')) : null,
    contextTokens: positiveOf(field(field(field(details, 'info'), 'meta'), 'n_ctx')),
    exitCode: integerOf(field(details, 'exit_code')),
    failed: field(details, 'failed') === true,
  };
}

/** Stages count the same: with two, the end of the first is half. */
function progressOf(progress: unknown): number | null {
  const value = field(progress, 'value');
  if (typeof value !== 'number' || !Number.isFinite(value)) return null;
  const share = Math.min(1, Math.max(0, value));
  const stages = field(progress, 'stages');
  if (!Array.isArray(stages) || stages.length === 0) return share;
  const index = stages.indexOf(field(progress, 'current'));
  return index < 0 ? share : (index + share) / stages.length;
}
