/**
 * The process that runs node-llama-cpp: native code that may crash, and does so here alone. It ends when
 * the runtime does, told by its channel closing and by the kernel.
 */
import { flushCompileCache } from 'node:module';
import { fail, messageOf, type Result } from '../../../../shared/errors.ts';
import type {
  CallMessage,
  EngineHandlers,
  EngineOp,
  EngineOptions,
  FromEngine,
  ToEngine,
} from '../messages.ts';
import { type Engine, openEngine } from './engine.ts';
import { endWithParent, goFirstWhenMemoryIsShort } from './survival.ts';

endWithParent();
goFirstWhenMemoryIsShort();

let engine: Engine | null = null;
const running = new Map<number, AbortController>();
const settled = new Set<Promise<void>>();

function say(message: FromEngine): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start(options: EngineOptions): Promise<void> {
  const opened = await openEngine(options);
  if (!opened.ok) {
    say({ type: 'unavailable', error: opened.error });
    return;
  }
  engine = opened.value;
  say({ type: 'up', facts: engine.facts });
  flushCompileCache();
}

async function call<Op extends EngineOp>(handlers: EngineHandlers, message: CallMessage<Op>): Promise<void> {
  const { id, op, ask } = message;
  const abort = new AbortController();
  running.set(id, abort);
  let result: Result<unknown>;
  try {
    result = await handlers[op](ask, {
      signal: abort.signal,
      tell: (told) => say({ type: 'tell', id, told }),
    });
  } catch (thrown) {
    result = fail('internal', `The engine could not do it: ${messageOf(thrown)}`);
  }
  running.delete(id);
  say({ type: 'answer', id, result });
}

/** What is being written is finished or taken back; the rest the kernel takes. */
async function stop(): Promise<void> {
  for (const abort of running.values()) abort.abort();
  await Promise.allSettled(settled);
  await engine?.close();
  process.exit(0);
}

process.on('message', (message: ToEngine) => {
  switch (message.type) {
    case 'start':
      void start(message.options);
      break;
    case 'call': {
      if (engine === null) break;
      const done: Promise<void> = call(engine.handlers, message).finally(() => settled.delete(done));
      settled.add(done);
      break;
    }
    case 'cancel':
      running.get(message.id)?.abort();
      break;
    case 'ping':
      say({ type: 'pong', stepMs: engine?.longestStepMs() ?? 0 });
      break;
    case 'stop':
      void stop();
      break;
  }
});
// Ctrl-C reaches the whole terminal group; the runtime decides when this process goes.
process.on('SIGINT', () => {});
