import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { lastLines } from '../core/backends/own/bounded-log.ts';
import { followLog } from '../core/backends/own/follow-log.ts';
import { logFileOf } from '../core/backends/own/log-file.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { readCount } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

const LINES = 200;
const LOOK_EVERY_MS = 250;

/** What a server that VRAM Landlord runs has written; read from its file, so no runtime is needed. */
export const runLogs: Run = async (invocation, terminal) => {
  const count = readCount(invocation, 'lines', 1, 100_000);
  if (!count.ok) return usageError(invocation.command, count.error.message, terminal);
  const { logDir } = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    stateDir: invocation.text('state-dir') ?? undefined,
  });
  const backend = invocation.positionals[0] ?? '';
  const file = logFileOf(logDir, backend);
  // A name is one part of a path, whatever is in it.
  if (backend.includes('/') || !existsSync(file)) {
    const there = existsSync(logDir)
      ? readdirSync(logDir).flatMap((name) => (name.endsWith('.log') ? [name.slice(0, -'.log'.length)] : []))
      : [];
    const which =
      there.length === 0
        ? 'only a backend with a `command` in the config has one'
        : `there are those of ${there.map(plain).join(', ')}`;
    terminal.err(`landlord logs: there is no log of ${plain(backend)}: ${which}.`);
    return EXIT.refused;
  }
  const show = (line: string): void => terminal.out(plain(line.replace(/\r$/, '').replaceAll('\t', '  ')));
  const next = followLog(file);
  for (const line of lastLines(file, count.value ?? LINES)) show(line);
  if (!invocation.flag('follow')) return EXIT.done;
  for (;;) {
    await sleep(LOOK_EVERY_MS);
    for (const line of next()) show(line);
  }
};
