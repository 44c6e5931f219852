const LONGEST_NAME = 120;

/** What runs a program that was written for it: the program is whom one knows. */
const INTERPRETERS = /^(python[\d.]*|node|bun|deno|ruby|perl|bash|sh|zsh|uv|npx|npm)$/;
/** Their options that take the next word with them (node, python3, deno: `--help`). */
const TAKES_A_WORD = new Set(
  '-r --require --import --loader --experimental-loader -C --conditions --env-file -W -X -I --with --python'.split(
    ' ',
  ),
);
/** What follows is the program's text, not its name. */
const TEXT = /^(?:(?:python[\d.]*|bash|sh|zsh) -c|(?:node|bun|deno|ruby|perl) (?:-e|--eval|-p|-pe|--print))$/;
/** `bun run x.ts`, `uv run x.py`, `npm run x`, `npm exec x`. */
const COMMANDS = new Set(['run', 'exec', 'x', 'tool']);
const HAS_COMMANDS = /^(bun|deno|uv|npm)$/;

/**
 * `python3 /opt/agents/writer.py --fast` is `writer.py`: the last part of its path, whatever it is run by.
 * Takes the arguments of a process as they are in `/proc/<pid>/cmdline`; null: there are none.
 */
export function programName(argv: readonly string[]): string | null {
  // A program that gives itself a title leaves one word with spaces in it.
  const words = argv
    .filter((word) => word !== '')
    .flatMap((word, index) => (index === 0 ? titleOf(word, argv) : [word]));
  const program = lastPart(words[0] ?? '');
  const name = INTERPRETERS.test(program) ? (scriptOf(program, words.slice(1)) ?? program) : program;
  return name === '' ? null : name.slice(0, LONGEST_NAME);
}

function titleOf(word: string, argv: readonly string[]): readonly string[] {
  return argv.filter((one) => one !== '').length === 1
    ? word.split(' ').filter((part) => part !== '')
    : [word];
}

function scriptOf(program: string, words: readonly string[]): string | null {
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (TEXT.test(`${program} ${word}`)) return null;
    if (TAKES_A_WORD.has(word)) index += 1;
    else if (!word.startsWith('-') && !(HAS_COMMANDS.test(program) && COMMANDS.has(word)))
      return lastPart(word);
  }
  return null;
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
