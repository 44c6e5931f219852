import { type RequestRecord, tokensPerS } from '../events/request-record.ts';

/** A model that has become slow by itself. */
export interface Slowdown {
  readonly modelId: string;
  /** Tokens a second of its last answers, and of its best ones before. */
  readonly nowPerS: number;
  readonly beforePerS: number;
}

interface Answer {
  readonly perS: number;
  readonly promptTokens: number;
}

interface Course {
  /** Which load of the model this is about. */
  readonly instance: string;
  readonly answers: readonly Answer[];
  /** The last one, which counts once the next has begun after its end: else they shared the model. */
  readonly waiting: Answer | null;
  /** Epoch ms: the end of the last answer, whether it counted or not. */
  readonly endedAtMs: number;
}

/** Shorter answers say little of a pace: a small model's are over before the system's own noise is. */
const LEAST_TOKENS = 16;
const LEAST_MS = 1_000;
/** So many answers one after the other. */
const RUN = 3;
const KEPT = 40;
/** Field reports: 50.9 tokens a second became 19.7 (hermes-agent 116078), and much less where weights were moved out (llama.cpp 5380). */
const SLOW_SHARE = 0.6;

/**
 * Tells a model that answers much more slowly than it did, in one and the same load: the driver may have
 * moved its weights out for another program, and they do not come back by themselves. Pure. Only answers
 * that had the model to themselves count, and they are compared with those to prompts of a like length,
 * since a long conversation is slower anyway.
 */
export class SpeedWatch {
  readonly #courses = new Map<string, Course>();

  /** `instance`: of the model's present load. Records come in the order in which requests end. */
  note(record: RequestRecord, instance: string): Slowdown | null {
    const { model } = record;
    if (model === null || record.route !== 'local') return null;
    const known = this.#courses.get(model);
    const course = known?.instance === instance ? known : { ...NO_COURSE, instance };
    const wasAlone = record.atMs + record.waitedMs >= course.endedAtMs;
    const answers =
      wasAlone && course.waiting !== null ? [...course.answers, course.waiting].slice(-KEPT) : course.answers;
    const slow = slowdown(answers);
    this.#courses.set(model, {
      instance,
      answers,
      waiting: wasAlone ? answerOf(record) : null,
      endedAtMs: Math.max(course.endedAtMs, record.atMs + record.totalMs),
    });
    return slow === null ? null : { modelId: model, ...slow };
  }
}

const NO_COURSE = { answers: [], waiting: null, endedAtMs: Number.NEGATIVE_INFINITY };

function answerOf(record: RequestRecord): Answer | null {
  const { promptTokens, generatedTokens } = record;
  const perS = tokensPerS(record);
  if (perS === null || promptTokens === null || (generatedTokens ?? 0) < LEAST_TOKENS) return null;
  if ((generatedTokens ?? 0) * 1000 < LEAST_MS * perS) return null;
  return { perS, promptTokens };
}

function slowdown(answers: readonly Answer[]): Omit<Slowdown, 'modelId'> | null {
  if (answers.length < 2 * RUN) return null;
  const now = answers.slice(-RUN);
  const shortest = Math.min(...now.map((answer) => answer.promptTokens));
  const before = answers.slice(0, -RUN).filter((answer) => answer.promptTokens >= shortest / 2);
  if (before.length < RUN) return null;
  const best = before
    .map((answer) => answer.perS)
    .sort((one, other) => other - one)
    .slice(0, RUN);
  const [paces, beforePerS] = [now.map((answer) => answer.perS), median(best)];
  // Each of them: one may have had to share the card with a program that came and went.
  return Math.max(...paces) < SLOW_SHARE * beforePerS ? { nowPerS: median(paces), beforePerS } : null;
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
