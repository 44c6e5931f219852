import { describe, expect, it } from 'vitest';
import { capabilities, columns, paint, plain } from '../../electron/cli/terminal.ts';

describe('what a terminal is given', () => {
  it('has colours only where somebody looks and NO_COLOR is not set', () => {
    const color = (isTty: boolean, env: Record<string, string>): boolean =>
      capabilities({ isTty, columns: 80, env }).color;
    expect(color(true, {})).toBe(true);
    expect(color(false, {})).toBe(false);
    expect(color(true, { NO_COLOR: '1' })).toBe(false);
    expect(color(true, { NO_COLOR: '' })).toBe(true);
    expect(color(true, { TERM: 'dumb' })).toBe(false);
  });

  it('has no control, reordering or line-breaking character of a name', () => {
    expect(plain('a\u0007\u001b]0;x\u0085\u200f\u2028b é 模型')).toBe(
      'a\\u{7}\\u{1b}]0;x\\u{85}\\u{200f}\\u{2028}b é 模型',
    );
  });

  it('is aligned by what can be seen, colours or not', () => {
    const green = paint({ color: true }, 'good', 'up');
    expect(
      columns([
        ['a', green, 'x'],
        ['bb', 'down', 'y'],
      ]),
    ).toEqual([`a   ${green}    x`, 'bb  down  y']);
    expect(
      columns(
        [
          ['1 GB', 'a'],
          ['10 GB', 'b'],
        ],
        [0],
      ),
    ).toEqual([' 1 GB  a', '10 GB  b']);
  });
});
