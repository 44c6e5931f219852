import { stripVTControlCharacters } from 'node:util';

/** Where a command writes, and what the other end can show. */
export interface Terminal {
  /** One or more whole lines, without the last newline. */
  out(text: string): void;
  err(text: string): void;
  readonly color: boolean;
  /** Whether block characters can be shown. */
  readonly unicode: boolean;
  /** Columns; 100 where nobody looks. */
  readonly columns: number;
}

export type Tone = 'bold' | 'quiet' | 'good' | 'warning' | 'bad';

const CODES: Readonly<Record<Tone, number>> = { bold: 1, quiet: 2, good: 32, warning: 33, bad: 31 };

export function paint(terminal: Pick<Terminal, 'color'>, tone: Tone, text: string): string {
  return terminal.color ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text;
}

/**
 * A name or sentence from outside, safe to print: a model's name may hold escape sequences or
 * characters that reorder the line. These are shown as what they are.
 */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

/** Columns padded to the widest cell; the last one is left ragged. `right`: indices that align right. */
export function columns(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries())
      widths[index] = Math.max(widths[index] ?? 0, visibleLength(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, index) => {
        const fill = ' '.repeat((widths[index] ?? 0) - visibleLength(cell));
        return right.includes(index) ? fill + cell : cell + fill;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Characters on the screen: colours take no room. */
function visibleLength(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}

export interface TerminalFacts {
  readonly isTty: boolean;
  readonly columns: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What the other end can show; NO_COLOR (no-color.org) counts when it is set and not empty. */
export function capabilities(facts: TerminalFacts): Pick<Terminal, 'color' | 'unicode' | 'columns'> {
  const { env } = facts;
  const noColor = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb';
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  return {
    color: facts.isTty && !noColor,
    unicode: /utf-?8/i.test(locale),
    columns: facts.columns ?? 100,
  };
}
