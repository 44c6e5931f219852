import type { Decoded } from '../engine-host.ts';
import type { Agent } from './agent.ts';
import type { DecodeAnswer, DeskResult } from './desk-api.ts';
import type { WaitingTurn } from './turn-queue.ts';

/** One DECODE on its way, in as many turns as it takes. */
export interface Job extends WaitingTurn {
  readonly who: Agent;
  readonly text: string;
  readonly maxTokens: number;
  readonly gone: AbortController;
  readonly answer: (result: DeskResult<DecodeAnswer>) => void;
  /** Nothing of it runs any more. */
  readonly over: PromiseWithResolvers<void>;
  lastTurnAtMs: number | null;
  running: boolean;
  /** Of the turn under way: aborted where a more urgent one is to have it. null: none, or it gives way to nobody. */
  yielding: AbortController | null;
  /** Until another turn ends, which holds the memory it needs. */
  blocked: boolean;
  /** Its text in tokens; null: not read yet. */
  prompt: readonly number[] | null;
  /** Tokens of the prompt that are in the conversation. */
  fed: number;
  /** What the conversation was before it, should the engine end. */
  before: { readonly tokens: readonly number[]; readonly untold: readonly number[] } | null;
  generated: number;
  said: string;
  stoppedBy: Decoded['stopped'] | null;
  readonly evicted: Set<string>;
  restored: boolean;
  reevaluated: number;
  /** Of its turns alone. */
  elapsedMs: number;
  generateMs: number;
}

export function newJob(
  who: Agent,
  text: string,
  maxTokens: number,
  nowMs: number,
  answer: Job['answer'],
): Job {
  return {
    who,
    agent: who.name,
    class: who.class,
    arrivedAtMs: nowMs,
    text,
    maxTokens,
    gone: new AbortController(),
    answer,
    over: Promise.withResolvers<void>(),
    lastTurnAtMs: null,
    running: false,
    yielding: null,
    blocked: false,
    prompt: null,
    fed: 0,
    before: null,
    generated: 0,
    said: '',
    stoppedBy: null,
    evicted: new Set(),
    restored: false,
    reevaluated: 0,
    elapsedMs: 0,
    generateMs: 0,
  };
}

export function answerOf(job: Job): DecodeAnswer {
  return {
    agent: job.agent,
    promptTokens: job.prompt?.length ?? 0,
    generatedTokens: job.generated,
    stoppedOnEos: job.stoppedBy === 'eos',
    contextFull: job.stoppedBy === 'context_full',
    elapsedMs: job.elapsedMs,
    evicted: [...job.evicted],
    restored: job.restored,
    reevaluatedTokens: job.reevaluated,
    text: job.said,
  };
}

/** What to read next: what its context lacks of the conversation, then its prompt. */
export interface Portion {
  readonly tokens: readonly number[];
  /** How many of them the conversation has already. */
  readonly missing: number;
  /** With them all is read, and it may generate. */
  readonly isLast: boolean;
}

/**
 * Cuts a long prompt, since others may come while it is read. With a pending token before it, as many are read as there are
 * in the cut; without one the cut's last becomes pending, so one more makes it even. Cut at multiples of
 * the batch size, the result is the same to the bit as read in one piece.
 */
export function portionOf(job: Job, mostTokens: number): Portion {
  const { tokens, heldTokens } = job.who;
  const lacking = tokens.slice(heldTokens);
  const all = [...lacking, ...(job.prompt ?? []).slice(job.fed)];
  const most = mostTokens + (heldTokens === 0 ? 1 : 0);
  if (all.length <= most) return { tokens: all, missing: lacking.length, isLast: true };
  return { tokens: all.slice(0, most), missing: Math.min(lacking.length, most), isLast: false };
}

/** Takes what was decoded into the conversation. */
export function takeIn(job: Job, portion: Portion, decoded: Decoded): void {
  const { who } = job;
  const reread = Math.min(portion.missing, decoded.promptTokens);
  const fresh = decoded.promptTokens - reread;
  job.reevaluated += reread;
  who.tokens.push(...(job.prompt ?? []).slice(job.fed, job.fed + fresh), ...decoded.tokens);
  job.fed += fresh;
  // The end token is part of the conversation: it is read first when that goes on.
  if (decoded.stoppedOnEos && decoded.pendingToken !== null) who.tokens.push(decoded.pendingToken);
  who.heldTokens = decoded.heldTokens + (decoded.pendingToken === null ? 0 : 1);
  who.untold = decoded.untold;
  job.generated += decoded.tokens.length;
  job.generateMs += decoded.generateMs;
  job.said += decoded.text;
  if (job.generated > 0 && job.generateMs > 0) who.tokensPerS = (job.generated * 1000) / job.generateMs;
}
