import { z } from 'zod';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { Embedded } from '../engine-chat.ts';

export interface EmbeddingsCall {
  readonly model: string;
  readonly inputs: readonly (string | readonly number[])[];
  readonly base64: boolean;
}

const tokens = z.array(z.int().nonnegative()).min(1);
const body = z.looseObject({
  model: z.string(),
  input: z.union([
    z.string(),
    tokens,
    z.array(z.string()).min(1).max(2048),
    z.array(tokens).min(1).max(2048),
  ]),
  encoding_format: z.enum(['float', 'base64']).nullish(),
  dimensions: z.int().nullish(),
});

/** A request of `POST /v1/embeddings` (OpenAI's API reference). Errors: `bad_input`, `not_supported`. */
export function parseEmbeddings(raw: unknown): Result<EmbeddingsCall> {
  const parsed = body.safeParse(raw);
  if (!parsed.success) {
    return fail(
      'bad_input',
      'An embeddings request has a model and an input: a text, texts, tokens, or lists of tokens.',
    );
  }
  const { model, input, encoding_format: format, dimensions } = parsed.data;
  if (dimensions != null) {
    return fail('not_supported', 'The embedded engine does not shorten vectors; leave dimensions out.');
  }
  return ok({ model, inputs: inputsOf(input), base64: format === 'base64' });
}

function inputsOf(input: z.infer<typeof body>['input']): EmbeddingsCall['inputs'] {
  if (typeof input === 'string') return [input];
  return input.every((one) => typeof one === 'number') ? [input] : input;
}

export function encodeEmbeddings(call: EmbeddingsCall, made: Embedded) {
  return {
    object: 'list',
    model: call.model,
    data: made.vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      // Little-endian floats of 32 bits, as OpenAI's clients ask for by default.
      embedding: call.base64 ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector,
    })),
    usage: { prompt_tokens: made.tokens, total_tokens: made.tokens },
  };
}
