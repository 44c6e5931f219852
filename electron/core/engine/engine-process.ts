import { type ChildProcess, spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { FromEngine, ToEngine } from './messages.ts';

/**
 * The process an engine runs in: a Node child, under the app too. Electron's `utilityProcess` would be
 * another one to prove: the same runs in the app, the service and `landlord serve`, its environment stands
 * before its allocator and its threads begin, and the kernel ends it with the process that started it.
 */
export interface EngineProcess {
  /** null: it could not be started. */
  readonly pid: number | null;
  /** What is said to one that is gone is lost. */
  send(message: ToEngine): void;
  /** SIGKILL, to exactly this process: whoever started it reaps it, so its pid can't be another's until then. */
  kill(): void;
}

export interface EngineProcessEvents {
  onMessage(message: FromEngine): void;
  /** Once, when it is gone or could not be started. */
  onExit(end: ProcessEnd): void;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** Last lines of its stderr, just before it ended, where llama.cpp says why it aborts; may be empty. */
  readonly lastWords: string;
}

export type StartEngineProcess = (events: EngineProcessEvents) => EngineProcess;

/**
 * What the child needs before it starts. Five decoding contexts fill libuv's four threads; without the
 * malloc threshold each context that goes leaves its memory with the process (67 → 139 MB over 200 of
 * them, measured). A backtrace of an abort would start a debugger.
 */
export const ENGINE_ENV = {
  UV_THREADPOOL_SIZE: '16',
  MALLOC_MMAP_THRESHOLD_: '131072',
  GGML_NO_BACKTRACE: '1',
} as const;

const CHILD = fileURLToPath(new URL('./child/engine-child.ts', import.meta.url));
const LAST_WORDS_CHARS = 2000;
/** What was said earlier than so long before the end is of something else. */
const LAST_WORDS_MS = 5_000;
const LAST_WORDS_WAIT_MS = 200;

export interface NodeEngineOptions {
  /** Default: the Node that runs us. */
  readonly nodePath?: string;
  readonly childPath?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly compileCacheDir?: string | null;
  /** Default 5 s. */
  readonly lastWordsMs?: number;
  /** Takes what llama.cpp says and when a child comes and goes, line by line. */
  readonly log?: (text: string) => void;
}

/** A Node child. It ends when its channel to us closes, and by the kernel's word when we die. */
export function nodeEngineProcess(options: NodeEngineOptions = {}): StartEngineProcess {
  return (events) => {
    const cache = process.env.NODE_COMPILE_CACHE ?? getCompileCacheDir() ?? options.compileCacheDir ?? null;
    const child: ChildProcess = spawn(
      options.nodePath ?? process.execPath,
      ['--disable-warning=ExperimentalWarning', options.childPath ?? CHILD],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        serialization: 'advanced',
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          ...ENGINE_ENV,
          ...(cache === null ? {} : { NODE_COMPILE_CACHE: cache }),
          ...options.env,
        },
      },
    );
    const log = (line: string): void => options.log?.(`${new Date().toISOString()} ${line}\n`);
    if (child.pid !== undefined) log(`the engine starts as process ${child.pid}`);
    let lastWords = '';
    let saidAtMs = Number.NEGATIVE_INFINITY;
    let ended = false;
    const end = (code: number | null, signal: string | null): void => {
      if (ended) return;
      ended = true;
      log(`the engine ended, ${signal ?? `code ${code}`}`);
      events.onExit({
        code,
        signal,
        lastWords: performance.now() - saidAtMs < (options.lastWordsMs ?? LAST_WORDS_MS) ? lastWords : '',
      });
    };
    child.stderr?.setEncoding('utf8');
    child.stderr?.on('data', (text: string) => {
      options.log?.(text);
      lastWords = (lastWords + text).slice(-LAST_WORDS_CHARS);
      saidAtMs = performance.now();
    });
    child.on('message', (message: FromEngine) => {
      if (!ended) events.onMessage(message);
    });
    child.on('error', (error) => {
      if (child.pid !== undefined) return;
      lastWords = error.message;
      saidAtMs = performance.now();
      end(null, null);
    });
    child.on('exit', (code, signal) => {
      // Its last words may still be on their way; whoever it left its stderr to could keep that open for ever.
      const limit = setTimeout(() => end(code, signal), LAST_WORDS_WAIT_MS);
      child.on('close', () => {
        clearTimeout(limit);
        end(code, signal);
      });
    });
    return {
      pid: child.pid ?? null,
      send(message) {
        if (child.connected) child.send(message, () => {});
      },
      kill() {
        child.kill('SIGKILL');
      },
    };
  };
}
