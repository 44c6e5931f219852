import type {
  EngineProcess,
  EngineProcessEvents,
  ProcessEnd,
  StartEngineProcess,
} from '../../../../electron/core/engine/engine-process.ts';
import type { CallMessage, ToEngine } from '../../../../electron/core/engine/messages.ts';
import type { Result } from '../../../../shared/errors.ts';

/** A child that does only what a test has it do. */
export interface FakeChild {
  readonly heard: ToEngine[];
  readonly killed: boolean;
  /** Comes up as process 100, 101, … on the CPU. */
  up(): void;
  unavailable(message: string): void;
  answer(id: number, result: Result<unknown>): void;
  tell(id: number, told: unknown): void;
  pong(stepMs?: number): void;
  end(end?: Partial<ProcessEnd>): void;
  calls(): CallMessage[];
}

export function fakeProcesses(): { readonly start: StartEngineProcess; readonly children: FakeChild[] } {
  const children: FakeChild[] = [];
  const start: StartEngineProcess = (events: EngineProcessEvents): EngineProcess => {
    const pid = 100 + children.length;
    const heard: ToEngine[] = [];
    let killed = false;
    children.push({
      heard,
      get killed() {
        return killed;
      },
      up: () =>
        events.onMessage({
          type: 'up',
          facts: { pid, gpu: 'cpu', gpuDevices: [], threads: 1, version: 'fake' },
        }),
      unavailable: (message) =>
        events.onMessage({ type: 'unavailable', error: { code: 'engine_unavailable', message } }),
      answer: (id, result) => events.onMessage({ type: 'answer', id, result }),
      tell: (id, told) => events.onMessage({ type: 'tell', id, told }),
      pong: (stepMs = 0) => events.onMessage({ type: 'pong', stepMs }),
      end: (end = {}) => events.onExit({ code: null, signal: 'SIGSEGV', lastWords: '', ...end }),
      calls: () => heard.filter((message) => message.type === 'call'),
    });
    return {
      pid,
      send: (message) => void heard.push(message),
      kill() {
        killed = true;
      },
    };
  };
  return { start, children };
}
