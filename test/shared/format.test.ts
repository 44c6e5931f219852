import { describe, expect, it } from 'vitest';
import { formatList } from '../../shared/format.ts';

describe('a list in a sentence', () => {
  it('is told whole, or its first with the rest as a number', () => {
    expect(['', 'a', 'a b', 'a b c'].map((words) => formatList(words.split(' ').filter(Boolean)))).toEqual([
      '',
      'a',
      'a and b',
      'a, b and c',
    ]);
    const many = ['a', 'b', 'c', 'd', 'e'];
    expect(formatList(many, 5)).toBe('a, b, c, d and e');
    expect(formatList(many, 4)).toBe('a, b, c and 2 others');
  });
});
