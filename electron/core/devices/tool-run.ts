import { type ChildProcess, execFile } from 'node:child_process';
import { messageOf } from '../../../shared/errors.ts';

const TIME_LIMIT_MS = 8000;

const running = new Set<ChildProcess>();

/** For a process that is about to end: a tool that hangs would outlive it. */
export function endTools(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** One run of a vendor's tool. */
export interface ToolRun {
  /** null: it could not be started, or was ended after its time. */
  readonly exitCode: number | null;
  readonly output: string;
}

/** Runs a tool with the C locale, ends it after `timeLimitMs`, and always resolves. */
export function runTool(
  program: string,
  args: readonly string[],
  timeLimitMs = TIME_LIMIT_MS,
): Promise<ToolRun> {
  return new Promise((resolve) => {
    const options = {
      timeout: timeLimitMs,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
      // Some print decimal commas otherwise.
      env: { ...process.env, LC_ALL: 'C' },
    } as const;
    try {
      const child = execFile(program, [...args], options, (error, stdout, stderr) => {
        running.delete(child);
        const output = `${stdout}${stderr}`;
        if (error === null) resolve({ exitCode: 0, output });
        else {
          const exitCode = typeof error.code === 'number' ? error.code : null;
          const missing = error.code === 'ENOENT' ? `${program} is not installed` : output;
          resolve({ exitCode, output: missing });
        }
      });
      running.add(child);
    } catch (thrown) {
      // Without memory for another process, and for other rare reasons, it throws instead of telling.
      resolve({ exitCode: null, output: messageOf(thrown) });
    }
  });
}
