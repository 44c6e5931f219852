import type { LandlordError } from '../../../shared/errors.ts';

/** One thing wrong with a config, where it stands (both count from 1), and what to write instead. */
export interface ConfigProblem {
  readonly line: number;
  readonly column: number;
  /** `backends[1].url`; empty for the file as a whole. */
  readonly key: string;
  readonly message: string;
}

/** A config that is not used. `message` holds every problem (the first few of many), ready for a person. */
export interface ConfigRejection extends LandlordError {
  readonly code: 'config_rejected';
  readonly fileName: string;
  readonly problems: readonly ConfigProblem[];
}

const TOLD_PROBLEMS = 5;

export function rejection(fileName: string, problems: readonly ConfigProblem[]): ConfigRejection {
  const ordered = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
  const told = ordered.slice(0, TOLD_PROBLEMS).map((problem) => {
    const key = problem.key === '' ? '' : `${problem.key}: `;
    return `${fileName}:${problem.line}:${problem.column}: ${key}${problem.message}`;
  });
  const more = ordered.length - told.length;
  const message = [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
  return {
    code: 'config_rejected',
    message,
    fileName,
    problems: ordered,
    numbers: { problems: ordered.length },
  };
}

/** `backends[1].url` of a path of keys and indexes. A key that is not a plain word is quoted. */
export function keyText(path: readonly (string | number)[]): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      const plain = /^[\w-]+$/.test(part) ? part : JSON.stringify(part.slice(0, 60));
      return index === 0 ? plain : `.${plain}`;
    })
    .join('');
}
