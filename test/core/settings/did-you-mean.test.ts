import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../../electron/core/settings/did-you-mean.ts';

describe('did you mean', () => {
  it('counts insertions, deletions, replacements and swaps', () => {
    expect(editDistance('idle', 'idle')).toBe(0);
    expect(editDistance('idel', 'idle')).toBe(1);
    expect(editDistance('', 'idle')).toBe(4);
    expect(editDistance('kitten', 'sitting')).toBe(3);
  });

  it('finds the near word and stays silent where none is near', () => {
    const known = ['idle', 'raceGrace', 'maxBig', 'cap'];
    expect(nearest('max_big', known)).toBe('maxBig');
    expect(nearest('racegrace', known)).toBe('raceGrace');
    expect(nearest('raceGrade', known)).toBe('raceGrace');
    expect(nearest('cup', known)).toBe('cap');
    expect(nearest('colour', known)).toBeNull();
    expect(nearest('cat5', known)).toBeNull();
  });
});
