/** A plan of a load, in words. Pure. */
import type { LoadPlan } from '../../shared/questions.ts';
import { strings } from '../strings.ts';
import { bytesText, shortName, tokensText } from './figures.ts';

export interface PlanContext {
  readonly key: number;
  readonly tokens: string;
  readonly bytes: string;
  readonly fits: boolean;
  readonly present: boolean;
  /** All of it, for who can't see what is dimmed. */
  readonly name: string;
}

export interface PlanView {
  readonly tone: 'calm' | 'warning';
  readonly sentence: string;
  readonly denial: string | null;
  readonly facts: readonly string[];
  readonly risks: readonly string[];
  readonly contexts: readonly PlanContext[];
  /** What a press of the button would be: a load, one by force, or nothing. */
  readonly offers: 'load' | 'anyway' | null;
  readonly alwaysAnyway: boolean;
}

const words = strings.plan;

export function planView(plan: LoadPlan): PlanView {
  const refused = plan.verdict === 'denied' || plan.verdict === 'unknown';
  return {
    tone: refused ? 'warning' : 'calm',
    sentence: sentenceOf(plan),
    denial: plan.denial,
    facts: factsOf(plan),
    risks: plan.risks,
    contexts: plan.contexts.map((context) => {
      const tokens = tokensText(context.tokens);
      const bytes = bytesText(context.bytes);
      return {
        key: context.tokens,
        tokens,
        bytes,
        fits: context.verdict !== 'denied',
        present: context.present,
        name: words.contextName(tokens, bytes, words.fits[context.verdict]),
      };
    }),
    offers: plan.verdict === 'loaded' ? null : refused ? 'anyway' : 'load',
    alwaysAnyway: plan.alwaysAnyway,
  };
}

/** How the context of a server's models is set; null: not known of that kind. */
export function contextHow(kind: string): string | null {
  return Object.entries(words.contextHow).find(([known]) => known === kind)?.[1] ?? null;
}

function sentenceOf(plan: LoadPlan): string {
  const free = plan.freeAfterBytes === null ? null : bytesText(Math.max(0, plan.freeAfterBytes));
  switch (plan.verdict) {
    case 'loaded':
      return words.loaded;
    case 'now':
      return free === null ? words.nowUnknown : words.now(free);
    case 'leaving': {
      const models = plan.leaving
        .map((one) => words.leaver(shortName(one.model), bytesText(one.bytes)))
        .join(', ');
      return free === null ? words.leaving(models) : words.leavingFree(models, free);
    }
    case 'denied':
      return words.denied;
    case 'unknown':
      return words.unknown;
  }
}

function factsOf(plan: LoadPlan): readonly string[] {
  const { needBytes, needFrom, freeBytes, floorBytes } = plan;
  const from = Object.entries(words.from).find(([key]) => key === needFrom)?.[1] ?? words.from.estimate;
  return [
    needBytes === null ? words.needUnknown : words.need(bytesText(needBytes), from),
    ...(freeBytes === null ? [] : [words.free(bytesText(freeBytes))]),
    ...(floorBytes === null ? [] : [words.floor(bytesText(floorBytes))]),
  ];
}
