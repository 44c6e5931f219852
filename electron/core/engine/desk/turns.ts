import { type ErrorCode, fail, messageOf } from '../../../../shared/errors.ts';
import type { Agent } from './agent.ts';
import { type refusal, refused } from './booking.ts';
import type { DecodeAnswer, DeskRefusal, DeskResult } from './desk-api.ts';
import type { DeskWorld } from './desk-world.ts';
import { answerOf, type Job, newJob, portionOf, takeIn } from './job.ts';
import type { Seats } from './seats.ts';
import type { Shelf } from './shelf.ts';
import { inOrder, isUrgent } from './turn-queue.ts';

export interface TurnLimits {
  /** Generated in one turn while others wait. */
  readonly tokens: number;
  /** Read of a prompt in one turn while others wait: a multiple of the batch size. */
  readonly promptTokens: number;
  /** Turns under way at once, where the ledger has room for their contexts. */
  readonly atOnce: number;
  /** Makes the next one's context ready while another decodes; without, to measure what that saves. */
  readonly ahead: boolean;
}

export interface TurnsOptions {
  readonly world: DeskWorld;
  readonly seats: Seats;
  readonly shelf: Shelf;
  readonly limits: () => TurnLimits;
  /** Its conversation has grown, and is to be kept. */
  readonly said: (agent: Agent) => void;
}

/** Errors of a decode that has not touched the context, or after which there is none. */
const LEAVES_AS_IT_WAS: readonly ErrorCode[] = ['bad_input', 'cancelled', 'context_full', 'engine_ended'];

/** A turn of fewer tokens is over before its first one is of use: what is next begins beside it. */
const SHORT_TOKENS = 8;

/** Who decodes now, and who next. An agent's own requests go one after the other. */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #jobs = new Set<Job>();
  readonly #readingAhead = new Set<string>();
  /** Their first token is on its way: nothing else is begun beside it. */
  readonly #opening = new Set<Job>();
  #running = 0;
  #turnsOver = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  decode(
    agent: Agent,
    text: string,
    maxTokens: number,
    signal: AbortSignal,
  ): Promise<DeskResult<DecodeAnswer>> {
    if (signal.aborted) return Promise.resolve(cancelled(agent.name));
    const { promise, resolve } = Promise.withResolvers<DeskResult<DecodeAnswer>>();
    const job = newJob(agent, text, maxTokens, this.#nowMs(), resolve);
    const leave = (): void => this.#cancel(job);
    signal.addEventListener('abort', leave, { once: true });
    void promise.then(() => signal.removeEventListener('abort', leave));
    this.#jobs.add(job);
    if (!agent.busy) agent.stateSinceMs = job.arrivedAtMs;
    this.#pump();
    if (!job.running) {
      this.#askForTurn(job);
      // Who comes while another decodes may be next, and has that one's whole turn to be made ready in.
      void this.#prepareNext();
    }
    this.#options.world.changed();
    return promise;
  }

  /** Its place in the queue, from 0; Infinity: it waits for nothing. */
  placeOf(agent: Agent): number {
    const place = this.#waiting().findIndex((job) => job.who === agent);
    return place < 0 ? Number.POSITIVE_INFINITY : place;
  }

  isUsed(agent: Agent): boolean {
    return [...this.#jobs].some((job) => job.who === agent);
  }

  /** Cancels all that an agent has asked; resolves when nothing of it runs. */
  async cancel(agent: Agent): Promise<void> {
    const mine = [...this.#jobs].filter((job) => job.who === agent);
    const over = mine.map((job) => job.over.promise);
    for (const job of mine) this.#cancel(job);
    await Promise.all(over);
  }

  #cancel(job: Job): void {
    job.gone.abort();
    if (!job.running) this.#end(job, cancelled(job.agent));
  }

  #end(job: Job, result: DeskResult<DecodeAnswer>): void {
    if (!this.#jobs.delete(job)) return;
    job.answer(result);
    job.over.resolve();
    this.#options.world.changed();
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }

  /** The first request of each agent that has no turn now, in order. */
  #waiting(): readonly Job[] {
    const seen = new Set<Agent>();
    const first = [...this.#jobs].filter((job) => {
      if (seen.has(job.who)) return false;
      seen.add(job.who);
      return !job.running && !job.blocked && !job.who.busy;
    });
    return inOrder(first, this.#nowMs());
  }

  /** A batch turn gives way to an interactive one within a token or a batch of its prompt, not at its end only. */
  #askForTurn(job: Job): void {
    if (job.class !== 'interactive' || job.who.busy) return;
    [...this.#jobs].find((one) => one.yielding?.signal.aborted === false)?.yielding?.abort();
  }

  #pump(): void {
    while (this.#running < this.#options.limits().atOnce) {
      const [next] = this.#waiting();
      if (next === undefined) return;
      this.#running += 1;
      next.running = true;
      next.yielding = isUrgent(next, this.#nowMs()) ? null : new AbortController();
      next.who.busy = true;
      this.#opening.add(next);
      next.who.stateSinceMs = this.#nowMs();
      void this.#turn(next);
    }
  }

  /** Answers it when it is over; else it waits for its next turn. */
  async #turn(job: Job): Promise<void> {
    const startedAtMs = this.#nowMs();
    const before = job.fed + job.generated + job.reevaluated;
    let end: DeskRefusal | 'again' | 'blocked' | null;
    try {
      end = await this.#step(job);
    } catch (thrown) {
      end = {
        error: fail('internal', `The turn of ${job.agent} failed: ${messageOf(thrown)}.`).error,
        denial: null,
      };
    }
    const nowMs = this.#nowMs();
    job.elapsedMs += nowMs - startedAtMs;
    // A turn that it gave away before it came to anything is none: it ages on.
    if (job.fed + job.generated + job.reevaluated > before) job.lastTurnAtMs = nowMs;
    this.#opening.delete(job);
    job.running = false;
    job.yielding = null;
    job.who.busy = false;
    job.who.lastUsedAtMs = nowMs;
    job.who.stateSinceMs = nowMs;
    this.#running -= 1;
    job.blocked = end === 'blocked' && this.#running > 0;
    if (job.blocked) this.#askForTurn(job);
    // What a turn that ends leaves free may be what another waits for.
    if (end !== 'blocked') this.#turnsOver += 1;
    if (end !== 'blocked') for (const other of this.#jobs) other.blocked = false;
    if (end !== 'again' && end !== 'blocked')
      this.#end(job, end === null ? { ok: true, value: answerOf(job) } : { ok: false, error: end });
    else if (job.gone.signal.aborted) this.#end(job, cancelled(job.agent));
    this.#pump();
    this.#options.world.changed();
  }

  async #step(job: Job): Promise<DeskRefusal | 'again' | 'blocked' | null> {
    const { seats, shelf, said, world } = this.#options;
    const { who } = job;
    // Beside another turn nothing leaves for it but what is idle: where that is too little, it waits.
    const turnsBefore = this.#turnsOver;
    const stop = (why: DeskRefusal): DeskRefusal | 'blocked' => {
      const othersHad = this.#running > 1 || this.#turnsOver > turnsBefore;
      return othersHad && why.denial !== null ? 'blocked' : this.#undo(job, why);
    };
    const loaded = await shelf.load(who.model, who.name, who.contextBytes, this.#running === 1);
    if (!loaded.ok) return stop(loaded.error);
    if (job.gone.signal.aborted) return cancelled(who.name).error;
    const stranger = otherModel(who);
    if (stranger !== null) return stranger;
    const seat = await seats.seat(who, this.#running === 1);
    if (!seat.ok) return stop(seat.error);
    who.lastSwitchMs = seat.value.tookMs;
    for (const name of seat.value.evicted) if (name !== who.name) job.evicted.add(name);
    job.restored ||= seat.value.restored;
    const unread = await this.#readPrompt(job);
    if (unread !== null) return this.#undo(job, unread);
    const { gone, yielding } = job;
    const ends = yielding === null ? gone.signal : AbortSignal.any([gone.signal, yielding.signal]);
    for (;;) {
      if (ends.aborted) return gone.signal.aborted ? cancelled(who.name).error : 'again';
      const limits = this.#options.limits();
      const portion = portionOf(job, limits.promptTokens);
      const left = Math.min(limits.tokens, job.maxTokens - job.generated);
      const context = who.live;
      if (context === null) return this.#undo(job, lost(who.name));
      if (!portion.isLast || left < SHORT_TOKENS) this.#opened(job);
      const decoded = await world.host.decode(
        {
          contextId: context.contextId,
          tokens: portion.tokens,
          maxTokens: portion.isLast ? left : 0,
          ...(portion.tokens.length === 0 ? { untold: who.untold } : {}),
        },
        () => this.#opened(job),
        ends,
      );
      if (!decoded.ok) {
        if (!LEAVES_AS_IT_WAS.includes(decoded.error.code)) await seats.drop(who);
        return this.#undo(job, { error: decoded.error, denial: null });
      }
      takeIn(job, portion, decoded.value);
      job.stoppedBy = decoded.value.stopped;
      if (decoded.value.stopped === 'cancelled') {
        if (!gone.signal.aborted) return 'again';
        said(who);
        return cancelled(who.name).error;
      }
      if (decoded.value.stopped !== 'limit' || (portion.isLast && job.generated >= job.maxTokens)) {
        said(who);
        return null;
      }
      world.changed();
      if (this.#waiting().length > 0) return 'again';
    }
  }

  /** null: its prompt is read, and fits. */
  async #readPrompt(job: Job): Promise<DeskRefusal | null> {
    const { who } = job;
    const { loaded } = who.model;
    if (job.prompt !== null) return null;
    if (loaded === null) return lost(who.name);
    job.before = { tokens: [...who.tokens], untold: who.untold };
    who.vocabulary = loaded.vocabulary;
    const tokens = await this.#options.world.host.tokenize(loaded.modelId, job.text, false);
    if (!tokens.ok) return { error: tokens.error, denial: null };
    const isFirst = who.tokens.length === 0 && loaded.beginToken !== null;
    const prompt =
      isFirst && loaded.beginToken !== null ? [loaded.beginToken, ...tokens.value] : tokens.value;
    if (prompt.length === 0 && who.tokens.length === 0)
      return refused('bad_input', `${who.name} has no conversation yet, so there has to be a prompt.`).error;
    const whole = who.tokens.length + prompt.length;
    if (whole >= who.contextTokens)
      return refused(
        'context_full',
        `The conversation of ${who.name} has ${who.tokens.length} tokens and this prompt ${prompt.length}; its context holds ${who.contextTokens}. UNREGISTER it and REGISTER it anew, with a larger context= if need be.`,
        { heldTokens: who.tokens.length, promptTokens: prompt.length, contextTokens: who.contextTokens },
      ).error;
    job.prompt = prompt;
    return null;
  }

  /** Where the engine has ended, the conversation is as it was before this request, which can be made again. */
  #undo(job: Job, why: DeskRefusal): DeskRefusal {
    const { who, before } = job;
    if (why.error.code !== 'engine_ended') return why;
    if (before !== null) {
      who.tokens = [...before.tokens];
      who.untold = before.untold;
    }
    const message = `${why.error.message} ${who.name} stays registered and its conversation is as it was before this request: send it again.`;
    return { error: { ...why.error, message }, denial: null };
  }

  #opened(job: Job): void {
    if (this.#opening.delete(job)) void this.#prepareNext();
  }

  /**
   * While one decodes, the next one's weights are read ahead, or its context made ready: from its first
   * token on, so that this comes out of no switch.
   */
  async #prepareNext(): Promise<void> {
    const { seats, world, limits } = this.#options;
    const [next] = limits().ahead && this.#opening.size === 0 ? this.#waiting() : [];
    if (next === undefined) return;
    const { model } = next.who;
    if (model.loaded !== null) {
      await seats.prepare(next.who);
      return;
    }
    if (this.#readingAhead.has(model.path)) return;
    this.#readingAhead.add(model.path);
    await world.host.readAhead(model.path, next.gone.signal);
    this.#readingAhead.delete(model.path);
  }
}

function cancelled(name: string): ReturnType<typeof refusal> {
  return refused('cancelled', `The request of ${name} was cancelled; what was said until then is kept.`);
}

/** The file is another one since: what was said means nothing to it. null: it is the same, or has the same words. */
function otherModel(who: Agent): DeskRefusal | null {
  const { loaded, path } = who.model;
  if (loaded === null || who.tokens.length === 0 || who.vocabulary === null) return null;
  if (who.vocabulary === loaded.vocabulary) return null;
  return refused(
    'state_mismatch',
    `${path} is another model now, with other words than the one that ${who.name} has talked with. Put the old file back, or UNREGISTER ${who.name} and REGISTER it anew.`,
  ).error;
}

function lost(name: string): DeskRefusal {
  return refused('engine_ended', `The engine that held the context of ${name} has ended.`).error;
}
