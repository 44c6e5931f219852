import { describe, expect, it } from 'vitest';
import { Tail, usageOf } from '../../../electron/core/gateway/tail.ts';

describe('the tokens of an answer', () => {
  it('are read in any of the shapes', () => {
    expect(usageOf('…"usage":{"prompt_tokens":3,"completion_tokens": 7}}')).toEqual({
      promptTokens: 3,
      generatedTokens: 7,
      generatedMs: null,
    });
    expect(usageOf('"usage":{"input_tokens":3,"output_tokens":1}…"usage":{"output_tokens":9}')).toMatchObject(
      {
        promptTokens: 3,
        generatedTokens: 9,
      },
    );
    expect(usageOf('"timings":{"prompt_n":1,"predicted_n":2,"predicted_ms":1.5}')).toEqual({
      promptTokens: 1,
      generatedTokens: 2,
      generatedMs: 1.5,
    });
    expect(usageOf('{"prompt_eval_count":26,"eval_count":298,"eval_duration":4799921000}')).toEqual({
      promptTokens: 26,
      generatedTokens: 298,
      generatedMs: 4799.921,
    });
    expect(usageOf('"prompt_tokens":3,"x":1,"prompt_tokens":null').promptTokens).toBe(3);
    expect(usageOf('nothing')).toEqual({ promptTokens: null, generatedTokens: null, generatedMs: null });
  });

  it('count a prompt whole, also what the server knew from before', () => {
    // As llama-server 0.7.0 answers a prompt of 173 tokens of which it knows 172.
    const timings = '"timings":{"cache_n":172,"prompt_n":1,"predicted_n":20,"predicted_ms":5.05}';
    expect(usageOf(`"usage":{"completion_tokens":20,"prompt_tokens":173},${timings}`).promptTokens).toBe(173);
    expect(usageOf(timings).promptTokens).toBe(173);
    const anthropic = '"usage":{"cache_read_input_tokens":172,"input_tokens":1,"output_tokens":0}';
    expect(usageOf(`${anthropic} … "usage":{"output_tokens":20}`)).toMatchObject({
      promptTokens: 173,
      generatedTokens: 20,
    });
    const responses =
      '"usage":{"input_tokens":11,"output_tokens":2,"input_tokens_details":{"cached_tokens":10}}';
    expect(usageOf(responses).promptTokens).toBe(11);
  });
});

describe('what is kept of an answer', () => {
  const kept = (...parts: readonly string[]): string => {
    const tail = new Tail();
    for (const part of parts) tail.add(Buffer.from(part));
    return tail.text();
  };

  it('is all of a short one, as it was', () => {
    expect(kept('ab', 'c')).toBe('abc');
    expect(kept('x'.repeat(5_000))).toBe('x'.repeat(5_000));
  });

  it('is the beginning and the end of a long one, in however many parts it came', () => {
    const first = '{"usage":{"prompt_tokens":5}';
    const last = '"predicted_n":7}';
    for (const middle of [[' '.repeat(1_000_000)], Array.from({ length: 100_000 }, () => 'data: x\n\n')]) {
      const text = kept(first, ...middle, last);
      expect(text.length).toBeLessThan(6_000);
      expect(usageOf(text)).toMatchObject({ promptTokens: 5, generatedTokens: 7 });
    }
  });
});
