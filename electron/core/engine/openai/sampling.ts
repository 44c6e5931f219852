import { z } from 'zod';
import type { Sampling } from '../engine-chat.ts';

/** Of tokens; -1 is none, as llama-server and LM Studio have it. */
export const TOKEN_LIMIT = z
  .int()
  .min(-1)
  .refine((limit) => limit !== 0, 'must be at least 1, or -1 for no limit')
  .nullish();

/** What chats and completions have in common (OpenAI's API reference, and llama-server's additions). */
export const SAMPLING = {
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: TOKEN_LIMIT,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  seed: z.int().nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
};
const asked = z.object(SAMPLING);

/** As llama-server has it, where a request does not say. */
const TEMPERATURE = 0.8;

/** `max_tokens` as it stands; a chat may have a newer name for it. */
export function samplingOf(one: z.infer<typeof asked>): Sampling {
  return {
    maxTokens: tokenLimitOf(one.max_tokens),
    temperature: one.temperature ?? TEMPERATURE,
    topP: one.top_p ?? null,
    // Not above 0: all tokens, as llama-server has it.
    topK: one.top_k == null ? null : Math.max(0, one.top_k),
    minP: one.min_p ?? null,
    // Below 0 it is drawn, as llama-server has it.
    seed: one.seed == null || one.seed < 0 ? null : one.seed,
    frequencyPenalty: one.frequency_penalty ?? 0,
    presencePenalty: one.presence_penalty ?? 0,
    stop: one.stop == null ? [] : typeof one.stop === 'string' ? [one.stop] : one.stop,
  };
}

/** null: as many as there is room for. */
export function tokenLimitOf(limit: number | null | undefined): number | null {
  return limit == null || limit < 0 ? null : limit;
}
