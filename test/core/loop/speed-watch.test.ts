import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../../electron/core/events/request-record.ts';
import { SpeedWatch } from '../../../electron/core/loop/speed-watch.ts';

/** Answers one after the other, each 1 s after the last. */
function day(): (perS: number, change?: Partial<RequestRecord> & { instance?: string }) => string | null {
  const watch = new SpeedWatch();
  let atMs = 1_000_000;
  return (perS, { instance = 'one', ...change } = {}) => {
    const record: RequestRecord = {
      atMs,
      model: 'router/m',
      backend: 'router',
      agent: null,
      class: 'interactive',
      route: 'local',
      reason: null,
      status: 200,
      promptTokens: 1000,
      generatedTokens: 100,
      generatedMs: 100_000 / perS,
      waitedMs: 0,
      firstByteMs: 100,
      totalMs: 10_000,
      ...change,
    };
    atMs = record.atMs + record.totalMs + 1_000;
    const slow = watch.note(record, instance);
    return slow === null ? null : `${slow.beforePerS.toFixed(1)} to ${slow.nowPerS.toFixed(1)}`;
  };
}

describe('a model that has become slow (28-vulkan-evicted-weights)', () => {
  it('is told after three slow answers that had it to themselves', () => {
    const answer = day();
    for (const perS of [50.9, 49, 52, 51]) expect(answer(perS)).toBeNull();
    expect([answer(19.7), answer(20), answer(19), answer(19)]).toEqual([null, null, null, '51.0 to 19.7']);
    // And while it stays so.
    expect(answer(19)).toBe('51.0 to 19.0');
    // Loaded anew: another course.
    for (let index = 0; index < 4; index += 1) expect(answer(50, { instance: 'two' })).toBeNull();
    for (let index = 0; index < 3; index += 1) answer(10, { instance: 'two' });
    expect(answer(10, { instance: 'two' })).toBe('50.0 to 10.0');
  });

  it('is not one whose answers shared it, had longer prompts, or went elsewhere', () => {
    const overlapping = day();
    for (let index = 0; index < 5; index += 1) overlapping(50);
    for (let index = 0; index < 8; index += 1)
      expect(overlapping(20, { atMs: 2_000_000 + index * 1_000, totalMs: 60_000 })).toBeNull();

    const longer = day();
    for (let index = 0; index < 5; index += 1) longer(50);
    for (let index = 0; index < 8; index += 1) expect(longer(20, { promptTokens: 60_000 })).toBeNull();

    const away = day();
    for (let index = 0; index < 5; index += 1) away(50);
    for (let index = 0; index < 8; index += 1) expect(away(20, { route: 'fallback' })).toBeNull();
  });

  it('is not one that is a little slower, or of which too little is known', () => {
    const answer = day();
    for (let index = 0; index < 5; index += 1) answer(50);
    for (let index = 0; index < 6; index += 1) expect(answer(35)).toBeNull();
    const unknown = day();
    for (let index = 0; index < 5; index += 1) unknown(50);
    for (let index = 0; index < 6; index += 1) expect(unknown(20, { generatedMs: null })).toBeNull();
    const short = day();
    for (let index = 0; index < 5; index += 1) short(50);
    for (let index = 0; index < 6; index += 1) expect(short(5, { generatedTokens: 4 })).toBeNull();
    const soon = day();
    for (let index = 0; index < 5; index += 1) soon(2_000, { generatedMs: 50 });
    for (let index = 0; index < 6; index += 1) expect(soon(500, { generatedMs: 200 })).toBeNull();
  });
});
