import { basename, join } from 'node:path/posix';
import { isLlamaServer } from '../../process/proof.ts';
import { environmentArgs, withEnvironment } from './environment-flags.ts';
import { shellWords } from './other-flags.ts';

const SHELLS = /^(?:ba|da|z|k)?sh$/;
const CONTAINERS = /^(?:docker|podman|nerdctl)$/;

/**
 * What a command line starts, as its server reads it: a shell's script, and what stands before the server
 * (`env`, `taskset -c 0-7`, `nice`), are taken off. Of a container, what follows its image, with paths as
 * they are outside of it; it goes by the container program's name, since its server is no process of ours
 * to be asked. Nothing is run; what is not understood stays as it is.
 */
export function startedCommand(words: readonly string[]): readonly string[] {
  const [program = '', ...rest] = words;
  const script = SHELLS.test(basename(program)) ? scriptIn(rest) : null;
  if (script !== null) return startedCommand(lastOf(script));
  const container = words.findIndex((word) => CONTAINERS.test(basename(word)));
  const server = words.findIndex((_, at) => isLlamaServer(words.slice(at)));
  if (container >= 0 && (server < 0 || container < server)) {
    const run = words.indexOf('run', container);
    return run < 0 ? words : containerCommand(words[container] ?? '', words.slice(run + 1));
  }
  return server <= 0 ? words : withEnvironment(words.slice(server), variablesIn(words.slice(0, server)));
}

/** What follows a shell's own `-c`; null: it has none, and what follows a file is for that file. */
function scriptIn(words: readonly string[]): string | null {
  for (const [at, word] of words.entries()) {
    if (/^-\w*c$/.test(word)) return words[at + 1] ?? null;
    if (!/^[-+]/.test(word) && !/^[-+]\w*[oO]$/.test(words[at - 1] ?? '')) return null;
  }
  return null;
}

/** The last command of a script: what goes before it makes ready. */
function lastOf(script: string): readonly string[] {
  const words = shellWords(script.replace(/[\s;]+$/, '').replaceAll(/&&|;/g, ' ; '));
  return words.slice(words.lastIndexOf(';') + 1).filter((word, at) => at > 0 || word !== 'exec');
}

function variablesIn(words: readonly string[]): readonly (readonly [string, string])[] {
  return words.flatMap((word) => {
    const found = /^([A-Z_]\w*)=(.*)$/s.exec(word);
    return found === null ? [] : [[found[1] ?? '', found[2] ?? ''] as const];
  });
}

/** Options of `docker run` and `podman run` that take no value; all others take one. */
const WITHOUT_VALUE = new Set([
  ...['--rm', '--init', '--detach', '--interactive', '--tty', '--privileged', '--read-only', '--replace'],
  ...['--publish-all', '--no-healthcheck', '--no-hosts', '--oom-kill-disable', '--quiet', '--sig-proxy'],
  ...['--disable-content-trust', '--env-host', '--http-proxy', '--rmi', '--tls-verify'],
]);

/** The same, short, of which several may be one word. */
const SHORT = /^-[ditPq]+$/;

interface Mount {
  readonly outside: string;
  readonly inside: string;
}

function containerCommand(program: string, words: readonly string[]): readonly string[] {
  const options: (readonly [name: string, value: string])[] = [];
  let at = 0;
  while (at < words.length && words[at]?.startsWith('-') === true) {
    const word = words[at] ?? '';
    const equals = word.indexOf('=');
    if (word.startsWith('--') && equals > 0) options.push([word.slice(0, equals), word.slice(equals + 1)]);
    else if (/^-[^-]./.test(word) && !SHORT.test(word)) options.push([word.slice(0, 2), word.slice(2)]);
    else if (!SHORT.test(word) && !WITHOUT_VALUE.has(word)) {
      at += 1;
      options.push([word, words[at] ?? '']);
    }
    at += 1;
  }
  const valuesOf = (...names: readonly string[]) =>
    options.flatMap(([name, value]) => (names.includes(name) ? [value] : []));
  const mounts = [...valuesOf('-v', '--volume').flatMap(volumeOf), ...valuesOf('--mount').flatMap(mountOf)];
  const variables = variablesIn(valuesOf('-e', '--env'));
  const command = [...environmentArgs(variables), ...words.slice(at + 1)];
  return [program, ...command.map((word) => outside(word, mounts))];
}

function volumeOf(text: string): readonly Mount[] {
  const [source = '', inside = ''] = text.split(':');
  return placed(source, inside);
}

function mountOf(text: string): readonly Mount[] {
  const parts = new Map(text.split(',').map((part) => [part.split('=')[0], part.split('=')[1] ?? '']));
  const source = parts.get('source') ?? parts.get('src') ?? '';
  return placed(source, parts.get('target') ?? parts.get('destination') ?? parts.get('dst') ?? '');
}

/** A volume by its name, or a folder of the server's own, is not to be found from here. */
function placed(source: string, inside: string): readonly Mount[] {
  return source.startsWith('/') && inside.startsWith('/') ? [{ outside: source, inside }] : [];
}

/** `/models/x.gguf`, or a flag with it, as the path is outside; the innermost mount counts. */
function outside(word: string, mounts: readonly Mount[]): string {
  const [, flag = '', path = ''] = /^(--?[\w-]+=)?(\/.*)$/s.exec(word) ?? [];
  const mount = mounts
    .filter(({ inside }) => path === inside || path.startsWith(inside.endsWith('/') ? inside : `${inside}/`))
    .sort((one, other) => other.inside.length - one.inside.length)[0];
  return mount === undefined ? word : flag + join(mount.outside, path.slice(mount.inside.length));
}
