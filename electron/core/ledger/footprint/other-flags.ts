import { flagOf } from './command-flags.ts';
import { environmentArgs } from './environment-flags.ts';
import { DEFAULT_FLAGS, type LoadFlags } from './flags.ts';

/**
 * llama-swap's `cmd`: one text, often over several lines with `\` at their ends, `#` comments and
 * `${PORT}` in it. Split as a shell would, without running anything.
 */
export function shellWords(text: string): readonly string[] {
  const words: string[] = [];
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n');
  const pattern = /(?:\\\n|\s)+|((?:\\[^\n]|"(?:\\[\s\S]|[^"\\])*"|'[^']*'|[^\s"'\\])+)/g;
  for (const match of lines.matchAll(pattern)) {
    if (match[1] !== undefined) words.push(unquoted(match[1]));
  }
  return words;
}

function unquoted(word: string): string {
  return word.replaceAll(
    /\\([\s\S])|"((?:\\[\s\S]|[^"\\])*)"|'([^']*)'/g,
    (_all, escaped, double, single) => {
      if (typeof escaped === 'string') return escaped;
      return typeof double === 'string' ? double.replaceAll(/\\(["\\$`])/g, '$1') : String(single);
    },
  );
}

/**
 * A section of llama-server's presets, or of the router's `status.preset`: `key = value` lines whose keys
 * are flags without dashes, long or short, or its environment variables. As a command line, without the
 * program's name.
 */
export function presetArgs(text: string): readonly string[] {
  const args: string[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*([A-Za-z][\w-]*)\s*=\s*(.*?)\s*$/.exec(line);
    const [name, value] = [match?.[1] ?? '', match?.[2] ?? ''];
    if (name === '' || name === 'version') continue;
    if (name.startsWith('LLAMA_ARG_')) {
      args.push(...environmentArgs([[name, value]]));
      continue;
    }
    const { flag, takes } = flagOf(name);
    const wants = takes === 'value' ? undefined : meaningOf(value, takes);
    if (wants === undefined) args.push(flag, value);
    else args.push(wants ? flag : inverse(flag));
  }
  return args;
}

/** llama-server's words, and some that people write (common/arg.cpp, `is_truthy`). A number may be a flag's value. */
function meaningOf(value: string, takes: 'nothing' | 'unknown'): boolean | undefined {
  const word = takes === 'nothing' ? value.replace(/^1$/, 'on').replace(/^0$/, 'off') : value;
  if (/^(?:true|on|yes|enabled)$/i.test(word)) return true;
  return /^(?:false|off|no|disabled)$/i.test(word) ? false : undefined;
}

/** `--no-mmap = off` is `--mmap`. */
function inverse(flag: string): string {
  return flag.startsWith('--no-') ? `--${flag.slice(5)}` : `--no-${flag.slice(2)}`;
}

/** Of Ollama's API (`options`) and its environment. */
export interface OllamaOptions {
  readonly num_ctx?: number | undefined;
  readonly num_batch?: number | undefined;
  readonly num_gpu?: number | undefined;
  /** OLLAMA_NUM_PARALLEL; each has num_ctx to itself. */
  readonly parallel?: number | undefined;
  readonly flashAttention?: boolean | undefined;
  /** OLLAMA_KV_CACHE_TYPE. */
  readonly cacheType?: string | undefined;
}

/** Ollama runs one slot unless told otherwise (what context it has else, `ollama-context.ts` says), and batches of 512. */
export function ollamaFlags(options: OllamaOptions): LoadFlags {
  const slots = Math.max(1, options.parallel ?? 1);
  const batch = options.num_batch ?? 512;
  const cacheType = options.cacheType ?? 'f16';
  return {
    ...DEFAULT_FLAGS,
    contextTokens: (options.num_ctx ?? 4096) * slots,
    slots,
    unified: false,
    batch,
    ubatch: Math.min(batch, 512),
    gpuLayers: options.num_gpu === undefined || options.num_gpu < 0 ? null : options.num_gpu,
    flashAttention: options.flashAttention === undefined ? 'auto' : options.flashAttention ? 'on' : 'off',
    cacheTypeK: cacheType,
    cacheTypeV: cacheType,
  };
}
