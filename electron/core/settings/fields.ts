import { z } from 'zod';
import type { NamePattern, Size } from '../../../shared/settings.ts';
import { nearest } from './did-you-mean.ts';
import { type Parsed, parseBytes, parseDuration, parseSize } from './units.ts';
import { normalizeUrl } from './urls.ts';

/**
 * The kinds of value a config holds, each with the sentence for what is wrong and what to write. A
 * sentence follows `file:line:column: key: `. What may hold a secret (URLs, commands, names of key
 * variables) is never repeated in one.
 */

/** A value in a sentence: short, never a whole mapping, and never a key that was pasted in the wrong place. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  // One long word of letters and digits mixed is what keys look like, and no amount, time or choice does.
  if (/[^\s"]{12,}/.test(text) && /\d/.test(text)) return 'this text';
  return text.length > 42 ? `${text.slice(0, 40)}…` : text;
}

/** What kind of value it is, where the value itself may be a secret in the wrong place. */
function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}

/** A mapping of these keys alone. One line of the message for each unknown key, in the order of `keys`. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape, what: string) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') {
        const keys: readonly unknown[] = issue.keys;
        return keys.map((key) => unknownKey(String(key), known)).join('\n');
      }
      if (issue.code === 'invalid_type')
        return `${kindOf(issue.input)} is not ${what}; write keys and values below it`;
      return undefined;
    },
  });
}

function unknownKey(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  return near === null
    ? `is not a setting; here may stand ${known.join(', ')}`
    : `is not a setting; did you mean ${near}?`;
}

export function listOf<Item extends z.core.$ZodType>(item: Item, example: string) {
  return z.array(item, { error: (issue) => `${kindOf(issue.input)} is not a list; write ${example}` });
}

export function recordOf<Value extends z.core.$ZodType>(value: Value, example: string) {
  return z.record(z.string(), value, {
    error: (issue) => `${kindOf(issue.input)} is not a mapping; write ${example}`,
  });
}

export function oneOf<const Words extends readonly string[]>(words: Words) {
  return z.enum(words, {
    error: (issue) => {
      const near = typeof issue.input === 'string' ? nearest(issue.input, words) : null;
      const choice = `write ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
      return near === null
        ? `${shown(issue.input)} is not understood; ${choice}`
        : `${shown(issue.input)} is not understood; did you mean ${near}? Else ${choice}`;
    },
  });
}

export function wholeNumber(least: number, most: number, what: string) {
  const error = (issue: { readonly input?: unknown }) =>
    `${shown(issue.input)} is not ${what}; write a whole number from ${least} to ${most}`;
  return z.number({ error }).int({ error }).min(least, { error }).max(most, { error });
}

/** `example` also says what a missing one should look like. The value is not repeated. */
export function text(what: string, example: string) {
  return z
    .string({
      error: (issue) =>
        issue.input === undefined || issue.input === null
          ? `${what} is missing; write ${example}`
          : `this is not ${what}; write ${example}, in quotes if it looks like a number`,
    })
    .refine((value) => value.trim() !== '', { error: `${what} is empty; write ${example}` });
}

export const size = fromTextOrNumber(parseSize, 'an amount of memory', '4GB, 512MiB or 12.5%').meta({
  description:
    'An amount of memory: 4GB (10^9), 512MiB (2^20), a share of the device such as 12.5%, or whole bytes.',
  examples: ['4GB', '512MiB', '12.5%'],
});

export const byteCount = fromTextOrNumber(parseBytes, 'an amount of memory', '2GB or 512MiB').meta({
  description: 'An amount of memory: 2GB (10^9), 512MiB (2^20) or whole bytes.',
  examples: ['2GB', '512MiB'],
});

/** Milliseconds, from `leastMs` to `mostMs`. */
export function duration(leastMs: number, mostMs: number, range: string) {
  const parse = (value: string | number): Parsed<number> => {
    const parsed = parseDuration(value);
    if (!parsed.ok || (parsed.value >= leastMs && parsed.value <= mostMs)) return parsed;
    return { ok: false, hint: `write ${range}` };
  };
  return fromTextOrNumber(parse, 'a usable duration', '180s or 2h');
}

const PATTERN_MAX_CHARS = 200;

/** `qwen-27b`, `router/qwen-27b`, or a regular expression written `/…/`. */
export const namePattern = text('a model name', 'qwen-27b or /vision/')
  .transform((value, context): NamePattern => {
    const parsed = parseNamePattern(value.trim());
    if (parsed.ok) return parsed.value;
    context.issues.push({ code: 'custom', input: value, message: parsed.hint });
    return z.NEVER;
  })
  .meta({
    description:
      'A model name (qwen-27b or router/qwen-27b), or a regular expression between slashes (/vision/).',
    examples: ['qwen-27b', '/vision/'],
  });

function parseNamePattern(value: string): Parsed<NamePattern> {
  if (!value.startsWith('/')) return { ok: true, value: { exact: value } };
  const end = value.lastIndexOf('/');
  if (end === 0) return { ok: false, hint: `a pattern ends with a slash too; write ${shown(`${value}/`)}` };
  if (end !== value.length - 1) {
    return {
      ok: false,
      hint: 'nothing may follow the second slash of a pattern; for any case write /[Vv]ision/',
    };
  }
  const pattern = value.slice(1, -1);
  if (pattern === '')
    return { ok: false, hint: 'an empty pattern would match every model; write /./ if you mean that' };
  if (pattern.length > PATTERN_MAX_CHARS) {
    return { ok: false, hint: `a pattern may have ${PATTERN_MAX_CHARS} characters at most; write several` };
  }
  try {
    new RegExp(pattern);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^.*\/: /, '') : 'unknown';
    return {
      ok: false,
      hint: `this pattern is not a regular expression (${why}); put \\ before characters meant as they are`,
    };
  }
  return { ok: true, value: { pattern } };
}

export const url = text('a URL', '"http://127.0.0.1:8080"').transform((value, context): string => {
  const parsed = normalizeUrl(value.trim());
  if (parsed.ok) return parsed.value;
  context.issues.push({ code: 'custom', input: undefined, message: parsed.hint });
  return z.NEVER;
});

export const pageOrigin = text('the origin of a page', '"https://chat.example.com"').refine(
  (value) => /^https?:\/\/[^\s/?#@*]+$/i.test(value),
  {
    error:
      'this is not the origin of a page; write its scheme, host and port, such as https://chat.example.com',
  },
);

export const variableName = text('the name of an environment variable', 'CLOUD_KEY').refine(
  (value) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(value),
  {
    error:
      'this is not the name of an environment variable; put the key itself into a variable and write its name, such as CLOUD_KEY',
  },
);

/** A backend's name is the part before the slash of its models' ids. */
export const plainName = text('a name', 'router').refine(
  (value) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value),
  {
    error: 'a name is letters, digits, points, _ and -, 64 at most; write for instance router',
  },
);

function fromTextOrNumber<T extends Size | number>(
  parse: (value: string | number) => Parsed<T>,
  what: string,
  example: string,
) {
  return z
    .union([z.string(), z.number()], {
      error: (issue) =>
        issue.input === undefined
          ? `${what} is missing; write ${example}`
          : `${shown(issue.input)} is not ${what}; write ${example}`,
    })
    .transform((value, context): T => {
      const parsed = parse(value);
      if (parsed.ok) return parsed.value;
      context.issues.push({
        code: 'custom',
        input: value,
        message: `${shown(value)} is not ${what}; ${parsed.hint}`,
      });
      return z.NEVER;
    });
}
