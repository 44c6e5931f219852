import { describe, expect, it } from 'vitest';
import { replayRows, replaySentence } from '../../shared/replay-text.ts';
import { sampleReplay } from '../support/answers.ts';

describe('a replay in words', () => {
  it('says what would have left, come back and been short', () => {
    const { asked, present } = sampleReplay({});
    expect(replaySentence(asked)).toBe('5 unloads, 4 of them loaded again; memory was short 5 times.');
    expect(replaySentence({ ...present, evictions: 0, reloads: 0, shortfalls: 0 })).toBe(
      'No model would have been unloaded, none loaded again; memory was never short.',
    );
  });

  it('tells better from worse by each figure', () => {
    const rows = replayRows(sampleReplay({}));
    expect(rows[0]).toMatchObject({ present: '3', asked: '5', better: false });
    expect(rows[4]).toMatchObject({ present: '0', asked: '0', better: null });
  });
});
