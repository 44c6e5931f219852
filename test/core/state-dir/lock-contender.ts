import { spawn } from 'node:child_process';
import { acquireRuntimeLock } from '../../../electron/core/state-dir/runtime-lock.ts';

/** A process that tries for the runtime lock: prints `won` and stays, or prints the error as JSON and ends. */
const [lockFile, runtimeFile, offspring] = process.argv.slice(2);
if (lockFile === undefined || runtimeFile === undefined) throw new Error('usage: LOCK RUNTIME_FILE');

const result = await acquireRuntimeLock(
  { lockFile, runtimeFile },
  { pid: process.pid, startedAt: '2026-01-02T03:04:05.000Z', version: '9.9.9' },
);
if (result.ok) {
  if (offspring === 'with-offspring') {
    const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)'], {
      stdio: 'ignore',
      detached: true,
    });
    process.stdout.write(`child ${child.pid}\n`);
  }
  await result.value.publish('http://127.0.0.1:7999');
  process.stdout.write('won\n');
  setInterval(() => {}, 60_000);
} else {
  process.stdout.write(`${JSON.stringify(result.error)}\n`);
}
