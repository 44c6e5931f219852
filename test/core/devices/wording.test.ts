import { describe, expect, it } from 'vitest';
import { LONGEST_NAME, sentence, shortName } from '../../../electron/core/devices/wording.ts';

describe('words of devices', () => {
  it('a name longer than 60 letters is cut at a word, and one without words within the limit', () => {
    const long =
      'Advanced Micro Devices Radeon Pro Something With Very Many Words In Its Marketing Name (rev c1)';
    expect(shortName(long)).toBe('Advanced Micro Devices Radeon Pro Something With Very Many…');
    expect([...shortName('x'.repeat(200))]).toHaveLength(LONGEST_NAME);
    expect(shortName('x'.repeat(60))).toBe('x'.repeat(60));
  });

  it('a name is one line, and never empty', () => {
    expect(shortName(' RTX\n\t4090\u0000 ')).toBe('RTX 4090');
    expect(shortName(' \n', 'Card')).toBe('Card');
  });

  it('an error ends, so that the next sentence does not run into it', () => {
    expect(["C2 can't be read", 'It is gone. ', 'Why?', ''].map(sentence)).toEqual([
      "C2 can't be read.",
      'It is gone.',
      'Why?',
      '',
    ]);
  });
});
