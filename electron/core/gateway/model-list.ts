import { findModel } from '../loop/find-model.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { ModelView } from '../loop/model-view.ts';
import { availabilityOf } from './admission.ts';

/** The models of all backends as OpenAI lists them, each with what it would take to use it. */
export function modelList(context: CommandContext): unknown {
  const views = context.loop.models.views();
  return { object: 'list', data: views.map((view) => entry(context, view, views)) };
}

export function modelDetail(context: CommandContext, id: string): unknown {
  const views = context.loop.models.views();
  const found = findModel(views, id);
  return found.ok ? entry(context, found.value, views) : null;
}

function entry(context: CommandContext, view: ModelView, views: readonly ModelView[]): unknown {
  const { observed } = view;
  const isAlone = views.filter((other) => other.observed.name === observed.name).length === 1;
  return {
    // The name that means this one and no other.
    id: isAlone ? observed.name : view.id,
    object: 'model',
    // When it was made is not known of a local file; clients want a number.
    created: 0,
    owned_by: view.backend,
    landlord: {
      id: view.id,
      backend: view.backend,
      aliases: observed.aliases,
      status: availabilityOf(context, view),
      context_tokens: observed.contextTokens,
      needs_bytes: view.predictedBytes,
    },
  };
}
