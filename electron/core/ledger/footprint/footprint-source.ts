import { stat } from 'node:fs/promises';
import { fail, type Result } from '../../../../shared/errors.ts';
import { askChild } from '../../process/ask-child.ts';
import type { Footprint } from './estimate.ts';
import { type LoadRequest, requestFlags } from './load-request.ts';

/** Answers what a load will take, without holding up whoever asks. */
export interface FootprintSource {
  /** Errors: `bad_input` about a file; `internal` where the child failed. */
  footprintOf(request: LoadRequest): Promise<Result<Footprint>>;
}

const CHILD_LIMIT_MS = 20_000;
/** The newest answers are kept; each is some hundred bytes. */
const KEEP = 500;

interface Waiting {
  readonly request: LoadRequest;
  readonly resolve: (answer: Result<Footprint>) => void;
}

/**
 * Reads headers in a child that ends with its answers: a large vocabulary takes 0.1 s of a core, the
 * parser stays in memory for good, and a file system that hangs takes its reader with it. One child at
 * a time, with all that was asked meanwhile. Answers are kept by the file's path, size and time and by
 * the flags; a file that can't be read is tried again.
 */
export function footprintsInChild(nodePath: string): FootprintSource {
  const kept = new Map<string, Footprint>();
  let waiting: Waiting[] = [];
  let running = false;
  const next = async (): Promise<void> => {
    if (running || waiting.length === 0) return;
    running = true;
    const batch = waiting;
    waiting = [];
    const answers = await askChild<readonly Result<Footprint>[]>({
      nodePath,
      entry: new URL('./footprint-child.ts', import.meta.url),
      request: batch.map((one) => one.request),
      limitMs: CHILD_LIMIT_MS,
    });
    for (const [index, one] of batch.entries()) one.resolve(answers?.[index] ?? CHILD_FAILED);
    running = false;
    void next();
  };
  return {
    async footprintOf(request) {
      const key = await loadKey(request);
      const before = key === null ? undefined : kept.get(key);
      if (before !== undefined) return { ok: true, value: before };
      const answer = await new Promise<Result<Footprint>>((resolve) => {
        waiting.push({ request, resolve });
        // What is asked at the same moment goes to the same child.
        setImmediate(() => void next());
      });
      if (key !== null && answer.ok) {
        kept.set(key, answer.value);
        const [oldest] = kept.keys();
        if (kept.size > KEEP && oldest !== undefined) kept.delete(oldest);
      }
      return answer;
    },
  };
}

const CHILD_FAILED = fail(
  'internal',
  'The model file’s header could not be read in time: look at the disk it lies on.',
);

/**
 * What an answer may be kept by: the flags that matter, and path, size and time of each file. null: one of
 * its files is not there.
 */
export async function loadKey(request: LoadRequest): Promise<string | null> {
  const flags = requestFlags(request);
  const { modelPath, projectorPath, draftPath, adapterPaths } = flags;
  const paths = [modelPath, projectorPath, draftPath, ...adapterPaths].filter((path) => path !== null);
  if (modelPath === null) return null;
  try {
    const seen = await Promise.all(paths.map((path) => stat(path)));
    return JSON.stringify([flags, request.kind, seen.map(({ size, mtimeMs }) => [size, mtimeMs])]);
  } catch {
    return null;
  }
}
