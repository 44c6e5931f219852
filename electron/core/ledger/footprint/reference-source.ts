import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { fail, isErrorCode, type Result } from '../../../../shared/errors.ts';
import type { Footprint } from './estimate.ts';
import type { FootprintSource } from './footprint-source.ts';
import type { LoadRequest } from './load-request.ts';

/**
 * Footprints that llama.cpp itself has checked.
 *
 *   no child ─► busy (one question at a time) ⇄ idle ─► no child (after `idleMs`, to give its memory back)
 *                 └── late, crashed or talking nonsense: killed, the question answered with an error
 */
export interface ReferenceSource extends FootprintSource {
  /** Ends the child; questions that wait are answered with an error. */
  stop(): void;
}

export interface ReferenceOptions {
  readonly nodePath: string;
  /** Of one question; the first one starts llama.cpp too. */
  readonly limitMs?: number;
  readonly idleMs?: number;
  /** Another program in the child's place, for tests. */
  readonly entry?: string;
}

const LIMIT_MS = 30_000;
const IDLE_MS = 10_000;
/** After so many failures in a row of the child itself no more are started. */
const GIVE_UP_AFTER = 3;
/** An answer is a few kilobytes; a child that writes more is out of order. */
const LONGEST_ANSWER = 1_000_000;

interface Waiting {
  readonly request: LoadRequest;
  readonly resolve: (answer: Result<Footprint>) => void;
}

/** A file that one question crashed on does not take the next question with it: each ends with its own child. */
export function referencesInChild(options: ReferenceOptions): ReferenceSource {
  const { nodePath, limitMs = LIMIT_MS, idleMs = IDLE_MS } = options;
  const entry = options.entry ?? fileURLToPath(new URL('./reference-child.ts', import.meta.url));
  const queue: Waiting[] = [];
  let asked: Waiting | null = null;
  let child: ChildProcess | null = null;
  let idle: NodeJS.Timeout | null = null;
  let late: NodeJS.Timeout | null = null;
  let failures = 0;
  let stopped = false;

  const settle = (answer: Result<Footprint>): void => {
    if (late !== null) clearTimeout(late);
    late = null;
    const one = asked;
    asked = null;
    one?.resolve(answer);
    if (queue.length > 0 && !stopped) next();
    else idle ??= setTimeout(end, idleMs).unref();
  };
  const end = (): void => {
    if (idle !== null) clearTimeout(idle);
    idle = null;
    const old = child;
    child = null;
    if (old !== null) kill(old);
  };
  const failed = (why: string): void => {
    failures += 1;
    end();
    settle(fail('internal', `llama.cpp could not be asked for its own figure: ${why}.`));
  };
  const start = (): ChildProcess => {
    const started = spawn(nodePath, ['--disable-warning=ExperimentalWarning', entry], {
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
      // Its own group: llama.cpp's binary is tried in a process that the child starts.
      detached: true,
    });
    // Without a descriptor left there is a child with no streams, and an error follows.
    const streams: readonly unknown[] = started.pid === undefined ? [] : started.stdio;
    const answers = streams[3];
    const isMine = (): boolean => child === started;
    started.once('error', () => isMine() && failed('its process can not be started'));
    started.once('exit', () => isMine() && failed('its process ended'));
    started.stdin?.on('error', () => undefined);
    if (answers instanceof Readable) {
      answers.on('error', () => undefined);
      let length = 0;
      answers.on('data', (chunk: Buffer) => {
        length = chunk.includes(10) ? 0 : length + chunk.length;
        if (length > LONGEST_ANSWER && isMine()) failed('its process talks without end');
      });
      createInterface({ input: answers }).on('line', (line) => {
        if (!isMine() || asked === null) return;
        const answer = readAnswer(line);
        if (answer === null) return failed('its process talks nonsense');
        if (answer.ok || answer.error.code !== 'internal') failures = 0;
        else failures += 1;
        settle(answer);
      });
    }
    // Nothing here keeps the program from ending; the child ends with its stdin.
    started.unref();
    for (const stream of streams) unrefStream(stream);
    return started;
  };
  const next = (): void => {
    if (idle !== null) clearTimeout(idle);
    idle = null;
    asked = queue.shift() ?? null;
    if (asked === null) return;
    if (failures >= GIVE_UP_AFTER) {
      settle(fail('internal', 'llama.cpp can not be asked here: it failed several times in a row.'));
      return;
    }
    try {
      child ??= start();
    } catch {
      // Without memory for another process, and for other rare reasons, `spawn` throws instead of telling.
      failed('its process can not be started');
      return;
    }
    late = setTimeout(() => failed('it took too long'), limitMs);
    child.stdin?.write(`${JSON.stringify(asked.request)}\n`);
  };

  return {
    footprintOf(request) {
      if (stopped) return Promise.resolve(fail('cancelled', 'VRAM Landlord is being stopped.'));
      return new Promise((resolve) => {
        queue.push({ request, resolve });
        if (asked === null) next();
      });
    },
    stop() {
      stopped = true;
      end();
      const gone = fail('cancelled', 'VRAM Landlord is being stopped.');
      for (const one of queue.splice(0)) one.resolve(gone);
      if (asked !== null) settle(gone);
      if (idle !== null) clearTimeout(idle);
    },
  };
}

/** The whole group, and the child itself where it has none. A child that hangs in the kernel is not waited for. */
function kill(child: ChildProcess): void {
  child.stdin?.destroy();
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

function unrefStream(stream: unknown): void {
  if (typeof stream !== 'object' || stream === null) return;
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
}

/** null: no answer of this protocol. */
function readAnswer(line: string): Result<Footprint> | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || !('ok' in value)) return null;
  if (value.ok === true && 'value' in value && isFootprint(value.value))
    return { ok: true, value: value.value };
  if (value.ok !== false || !('error' in value)) return null;
  const { error } = value;
  if (typeof error !== 'object' || error === null || !('code' in error) || !('message' in error)) return null;
  return isErrorCode(error.code) ? fail(error.code, String(error.message)) : null;
}

const BYTES = [
  'weightsBytes',
  'kvBytes',
  'recurrentBytes',
  'computeBytes',
  'overheadBytes',
  'totalBytes',
] as const;

/** Also of what was kept in a file. */
export function isFootprint(value: unknown): value is Footprint {
  if (typeof value !== 'object' || value === null) return false;
  const entries: ReadonlyMap<string, unknown> = new Map(Object.entries(value));
  const isCount = (key: string): boolean =>
    Number.isSafeInteger(entries.get(key)) && Number(entries.get(key)) >= 0;
  return (
    [...BYTES, 'layers', 'kvLayers', 'contextTokens'].every(isCount) && Array.isArray(entries.get('notes'))
  );
}
