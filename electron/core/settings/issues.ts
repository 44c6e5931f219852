import type { z } from 'zod';

/** A schema issue as one sentence at one place: unions resolved, one for each unknown key. */
export interface PlainIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** Whether it speaks of the key itself rather than of its value. */
  readonly ofKey: boolean;
}

type Issue = z.core.$ZodIssue;

export function plainIssues(
  issues: readonly Issue[],
  base: readonly (string | number)[] = [],
): readonly PlainIssue[] {
  return issues.flatMap((issue) => {
    const path = [...base, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))];
    if (issue.code === 'unrecognized_keys') {
      const messages = issue.message.split('\n');
      return issue.keys.map((key, index) => ({
        path: [...path, key],
        message: messages[index] ?? 'is not a setting',
        ofKey: true,
      }));
    }
    if (issue.code === 'invalid_union') {
      const branch = nearestBranch(issue.errors);
      if (branch !== null) return plainIssues(branch, path);
    }
    return [{ path, message: issue.message, ofKey: false }];
  });
}

/**
 * The alternative of a union the text was most likely meant to be: the one that was understood
 * deepest. null when none got past the value's own type, so that the union's own sentence is best.
 */
function nearestBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | null {
  let best: readonly Issue[] | null = null;
  let bestDepth = 0;
  for (const branch of branches) {
    const depth = Math.max(0, ...branch.map(depthOf));
    if (depth > bestDepth) {
      best = branch;
      bestDepth = depth;
    }
  }
  return best;
}

function depthOf(issue: Issue): number {
  const length = issue.path.length;
  if (issue.code === 'custom' || issue.code === 'too_small' || issue.code === 'too_big') return length + 0.5;
  if (issue.code === 'unrecognized_keys') return length + 1;
  if (issue.code === 'invalid_union') {
    return length + Math.max(0, ...issue.errors.flatMap((branch) => branch.map(depthOf)));
  }
  return length;
}
