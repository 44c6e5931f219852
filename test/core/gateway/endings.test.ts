import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Ending, Endings, recordOf } from '../../../electron/core/gateway/endings.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function ending(more: Partial<Ending> = {}): Ending {
  return {
    outcome: {
      route: 'local',
      backend: 'router',
      reason: null,
      status: 200,
      firstByteAtMs: 1_020,
      tail: '{"usage":{"prompt_tokens":7,"completion_tokens":24}}',
    },
    model: 'router/small',
    agent: 'writer',
    class: 'interactive',
    isStream: true,
    arrivedAtMs: 1_000,
    waitedMs: 5,
    endedAtMs: 1_300,
    endedAtEpochMs: 500_000,
    ...more,
  };
}

describe('the record of a request that is over', () => {
  it('has its times from arrival on, its tokens, and the pace of a stream', () => {
    const asked: string[] = [];
    const record = recordOf(ending(), (model) => {
      asked.push(model);
      return 40;
    });
    expect(record).toMatchObject({
      atMs: 499_700,
      firstByteMs: 20,
      totalMs: 300,
      promptTokens: 7,
      generatedTokens: 24,
      generatedMs: 280,
      savedPromptMs: 40,
    });
    expect(asked).toEqual(['router/small']);
  });

  it('knows no pace of a whole answer, and nothing saved of one that another machine gave', () => {
    const { outcome } = ending();
    expect(recordOf(ending({ isStream: false }), () => null).generatedMs).toBeNull();
    const away = ending({ outcome: { ...outcome, route: 'fallback' } });
    expect(recordOf(away, () => 40).savedPromptMs).toBeNull();
  });
});

describe('requests that are over', () => {
  it('are looked at in their order, some at a time, and none more than a moment late', () => {
    const seen: (string | null)[] = [];
    const endings = new Endings(({ agent }) => seen.push(agent));
    endings.add(ending({ agent: 'first' }));
    vi.advanceTimersByTime(60);
    endings.add(ending({ agent: 'second' }));
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(40);
    expect(seen).toEqual(['first', 'second']);
    for (let index = 0; index < 32; index += 1) endings.add(ending({ agent: `${index}` }));
    expect(seen).toHaveLength(34);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are all looked at where somebody wants to know, each once', () => {
    const seen: (string | null)[] = [];
    const endings = new Endings(({ agent }) => seen.push(agent));
    endings.add(ending());
    endings.settle();
    expect(seen).toEqual(['writer']);
    vi.advanceTimersByTime(1_000);
    expect(seen).toHaveLength(1);
  });
});
