import { isAbsolute } from 'node:path';
import { fail, ok, type Result } from '../../../../shared/errors.ts';

/** A line of the ledger socket (design §5.4), understood. */
export type DeskCommand =
  | { readonly type: 'help' | 'status' | 'list' }
  | ({ readonly type: 'register' } & RegisterWords)
  | { readonly type: 'unregister'; readonly agent: string }
  | { readonly type: 'decode'; readonly agent: string; readonly maxTokens: number; readonly prompt: string };

export interface RegisterWords {
  readonly agent: string;
  /** Absolute. */
  readonly path: string;
  /** Released when this connection ends. */
  readonly bind: boolean;
  /** Admitted with the layers that fit, where not all do. */
  readonly fit: boolean;
  /** null: not said. */
  readonly class: 'interactive' | 'batch' | null;
  /** null: not said. */
  readonly contextTokens: number | null;
}

const MOST_TOKENS = 1_000_000;
const LEAST_CONTEXT = 64;
/** llama.cpp makes contexts in steps of so many tokens (llama-context.cpp, `GGML_PAD(n_ctx, 256)`); what is told is what it makes. */
const CONTEXT_STEP = 256;
/** One word; no comma or `=`, which answers use between names. */
const AGENT = /^[^\s,="'\p{Cc}]{1,64}$/u;

/** Errors are `bad_input`, with a sentence that says how to write it. */
export function parseCommand(line: string, home: string): Result<DeskCommand> {
  const [, verb = '', rest = ''] = /^\s*(\S*)[ \t]*(.*)$/su.exec(line) ?? [];
  switch (verb.toUpperCase()) {
    case 'HELP':
    case 'STATUS':
    case 'LIST':
      if (rest.trim() !== '') return fail('bad_input', `${verb.toUpperCase()} stands alone on its line.`);
      return ok({
        type: verb.toLowerCase() === 'help' ? 'help' : verb.toLowerCase() === 'list' ? 'list' : 'status',
      });
    case 'REGISTER':
      return parseRegister(rest, home);
    case 'UNREGISTER': {
      const agent = checkAgent(rest.trim());
      return agent.ok ? ok({ type: 'unregister', agent: agent.value }) : agent;
    }
    case 'DECODE':
      return parseDecode(rest);
    default:
      return fail('bad_input', `${shown(verb)} is no command here: HELP lists them.`);
  }
}

function checkAgent(name: string): Result<string> {
  if (name === '') return fail('bad_input', 'The agent’s name is missing.');
  if (name === 'none') return fail('bad_input', 'An agent can’t be called none: answers use it for nobody.');
  if (AGENT.test(name)) return ok(name);
  return fail(
    'bad_input',
    `${shown(name)} is no agent’s name: it is one word of at most 64 characters, without commas, = and quotes.`,
  );
}

function parseDecode(rest: string): Result<DeskCommand> {
  const [, name = '', count = '', , prompt = ''] = /^(\S*)[ \t]*(\S*)([ \t](.*))?$/su.exec(rest) ?? [];
  const agent = checkAgent(name);
  if (!agent.ok) return agent;
  // Whoever asks for more than any context holds means all there is.
  const maxTokens = Math.min(Number(count), MOST_TOKENS);
  if (!/^\d+$/.test(count) || maxTokens < 1)
    return fail(
      'bad_input',
      `Write DECODE ${agent.value} 24 PROMPT: 24 is how many tokens to generate at most.`,
    );
  return ok({ type: 'decode', agent: agent.value, maxTokens, prompt });
}

function parseRegister(rest: string, home: string): Result<DeskCommand> {
  const [, name = '', after = ''] = /^(\S*)(.*)$/su.exec(rest) ?? [];
  const agent = checkAgent(name);
  if (!agent.ok) return agent;
  const cut = cutPath(after);
  if (!cut.ok) return cut;
  const { path, options } = cut.value;
  const whole = path.startsWith('~/') ? home + path.slice(1) : path;
  if (path === '') return fail('bad_input', `Write REGISTER ${agent.value}<TAB>/path/to/model.gguf.`);
  if (!isAbsolute(whole))
    return fail('bad_input', `The path begins with / or ~/, and ${shown(path)} does not.`);
  if (whole.includes('\0')) return fail('bad_input', 'A path has no NUL in it.');
  return parseOptions({ agent: agent.value, path: whole }, options);
}

/**
 * A path after a tab goes to the next tab or the line's end, so that it may hold spaces; after a space
 * it is one word. Quoted as a shell or JSON would, it may hold anything.
 */
function cutPath(text: string): Result<{ readonly path: string; readonly options: string }> {
  const tabbed = /^[ ]*\t/.test(text);
  const start = text.replace(/^[ \t]+/, '');
  const quote = start[0];
  if (quote === '"' || quote === "'") {
    const end = closing(start, quote);
    if (end < 0) return fail('bad_input', `The path’s closing ${quote} is missing.`);
    const options = start.slice(end + 1);
    if (options !== '' && !/^[ \t]/.test(options))
      return fail(
        'bad_input',
        `Something stands right after the path’s closing ${quote}: put a space or a tab between.`,
      );
    return ok({ path: unquoted(start.slice(1, end), quote), options });
  }
  const end = start.search(tabbed ? /\t/ : /[ \t]/);
  if (end < 0) return ok({ path: start.trimEnd(), options: '' });
  return ok({ path: start.slice(0, end).trimEnd(), options: start.slice(end) });
}

function closing(text: string, quote: string): number {
  for (let index = 1; index < text.length; index += 1) {
    if (quote === '"' && text[index] === '\\') index += 1;
    else if (text[index] === quote) return index;
  }
  return -1;
}

function unquoted(text: string, quote: string): string {
  if (quote === "'") return text;
  return text.replace(/\\(.)/gsu, (_, letter: string) =>
    letter === 't' ? '\t' : letter === 'n' ? '\n' : letter,
  );
}

function parseOptions(
  what: { readonly agent: string; readonly path: string },
  text: string,
): Result<DeskCommand> {
  let [bind, fit] = [false, false];
  let agentClass: RegisterWords['class'] = null;
  let contextTokens: number | null = null;
  for (const word of text.split(/[ \t]+/).filter((one) => one !== '')) {
    const [key = '', value = null] = word.split('=', 2);
    if (word === 'bind') bind = true;
    else if (word === 'fit') fit = true;
    else if (key === 'class' && (value === 'interactive' || value === 'batch')) agentClass = value;
    else if (key === 'context' && /^\d{1,9}$/.test(value ?? '') && Number(value) >= LEAST_CONTEXT)
      contextTokens = Math.ceil(Number(value) / CONTEXT_STEP) * CONTEXT_STEP;
    else
      return fail(
        'bad_input',
        `${shown(word)} is not understood: after the path there may be bind, fit, class=interactive, class=batch, context=TOKENS (${LEAST_CONTEXT} at least). A path with spaces follows a tab, or is quoted.`,
      );
  }
  return ok({ type: 'register', ...what, bind, fit, class: agentClass, contextTokens });
}

/** As much of what was sent as a sentence can bear. */
function shown(text: string): string {
  if (text === '') return 'An empty line';
  const clean = text.replace(/\p{Cc}/gu, '?');
  return clean.length <= 40 ? clean : `${clean.slice(0, 40)}…`;
}
