import { describe, expect, it } from 'vitest';
import { ageText, busyMessage } from '../../../electron/core/gate/turn.ts';

const HOLDER = {
  pid: 4242,
  command: 'python3 agent.py',
  session: 'writer',
  model: null,
  class: null,
  turn: null,
  acquiredAt: null,
} as const;

describe('what a deflected turn says', () => {
  it('names session, holder and age', () => {
    expect(busyMessage(HOLDER, 12_400, 'reader')).toBe(
      'local model in use by another session (session writer, pid 4242 python3 agent.py, for 12 s)',
    );
  });

  it('says unknown where it is, and never a zero', () => {
    expect(busyMessage(null, null, null)).toBe(
      'local model in use by another session (session unknown, holder unknown, age unknown)',
    );
    expect(busyMessage({ ...HOLDER, session: null, command: null }, null, null)).toContain(
      'pid 4242, age unknown',
    );
  });

  it('does not call a turn of the same session another session', () => {
    expect(busyMessage(HOLDER, 1, 'writer')).toContain('another turn of this session');
  });

  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [61_000, '61 s'],
    [180_000, '3 min'],
    [7_200_000, '2 h'],
  ])('%d ms is %s', (ms, text) => {
    expect(ageText(ms)).toBe(text);
  });
});
