import { describe, expect, it } from 'vitest';
import { promptTimings, Reuse } from '../../../electron/core/parking/reuse.ts';

/** The end of an answer as llama-server writes it, streamed or whole. */
function tail(cached: number, read: number, ms: number): string {
  return `"content":"a \\"timings\\" of mine"}}],"usage":{"prompt_tokens":${cached + read}},"timings":{"cache_n":${cached},"prompt_n":${read},"prompt_ms":${ms}.5,"predicted_n":4}}\n\ndata: [DONE]`;
}

const talk = { tokens: 1000, msPerToken: null };

describe('what an answer says of its prompt', () => {
  it('is read at its end, and unknown where nothing is said', () => {
    expect(promptTimings(tail(900, 10, 20))).toEqual({ cachedTokens: 900, readTokens: 10, readMs: 20.5 });
    expect(promptTimings('{"usage":{"prompt_tokens":4}}')).toBeNull();
    expect(promptTimings('"timings":{"predicted_n":4}')).toBeNull();
  });
});

describe('whether what came back is used', () => {
  it('the time saved is the pace of before for what needed no reading, told once', () => {
    const reuse = new Reuse(() => undefined);
    expect(reuse.answered('m', tail(0, 1000, 2000))).toBeNull();
    reuse.restored('m', [{ tokens: 1000, msPerToken: reuse.msPerToken('m') }]);
    expect(reuse.answered('m', tail(1000, 9, 30))).toBe(2001);
    expect(reuse.answered('m', tail(1009, 9, 30))).toBeNull();
  });

  it('a server that reads everything again, twice in a row, is told and believed no more (48-slot-save-no-op)', () => {
    const told: string[] = [];
    const reuse = new Reuse((id) => told.push(id));
    for (const _round of [1, 2]) {
      expect(reuse.isUseless('m')).toBe(false);
      reuse.restored('m', [talk]);
      expect(reuse.answered('m', tail(0, 1010, 2000))).toBeNull();
    }
    expect(told).toEqual(['m']);
    expect(reuse.isUseless('m')).toBe(true);
  });

  it('a shorter prompt is another conversation, and one that was used clears the record', () => {
    const told: string[] = [];
    const reuse = new Reuse((id) => told.push(id));
    reuse.restored('m', [talk]);
    expect(reuse.answered('m', tail(0, 40, 80))).toBeNull();
    expect(reuse.answered('m', tail(0, 1010, 2000))).toBeNull();
    reuse.restored('m', [talk]);
    expect(reuse.answered('m', tail(1000, 5, 9))).toBeGreaterThan(0);
    reuse.restored('m', [talk]);
    reuse.answered('m', tail(0, 1010, 2000));
    expect(told).toEqual([]);
  });
});
