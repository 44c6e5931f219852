import { basename } from 'node:path/posix';

/**
 * Whether a command line runs a program of that name: by its path's last part, `.exe` or a version after
 * it or not, also where an interpreter or a wrapper was given its path as first argument.
 */
export function isProgram(command: readonly string[], ...names: readonly string[]): boolean {
  return command.slice(0, 2).some((word, index) => {
    if (index === 1 && !INTERPRETERS.test(basename(command[0] ?? ''))) return false;
    const name = basename(word).replace(/\.(?:exe|py|js|AppImage)$/i, '');
    return names.some((wanted) => name === wanted || name.startsWith(`${wanted}-`) || name === `${wanted}d`);
  });
}

const INTERPRETERS = /^(?:python[\d.]*|node|electron|sh|bash|dash|busybox)$/;

/** The inference servers this product knows, as a process shows them. */
export type ServerProgram = 'llama-server' | 'llama-swap' | 'ollama' | 'lmstudio' | 'lemonade';

/** What Ollama starts for a model, by its own name; it is no server to be watched by itself. */
export function isModelRunner(command: readonly string[]): boolean {
  return isProgram(command, 'ollama') && command.includes('runner');
}

/** What a process most likely is, by its command line alone; an answer has to prove it. null: none of them. */
export function serverProgram(command: readonly string[]): ServerProgram | null {
  if (isProgram(command, 'llama-swap')) return 'llama-swap';
  if (isProgram(command, 'ollama')) return isModelRunner(command) ? null : 'ollama';
  if (
    isProgram(command, 'lm-studio', 'LM-Studio', 'lms', 'llmster') ||
    /LM[ -]Studio/.test(command[0] ?? '')
  ) {
    return 'lmstudio';
  }
  if (isProgram(command, 'lemonade-server', 'lemonade-router', 'lemonade', 'lemond')) return 'lemonade';
  const name = basename(command[0] ?? '');
  if (/^llama-server/.test(name) || (/^llama(?:\.exe)?$/.test(name) && command[1] === 'serve')) {
    return 'llama-server';
  }
  return null;
}
