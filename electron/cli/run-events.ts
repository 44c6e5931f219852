import { setTimeout as sleep } from 'node:timers/promises';
import type { LandlordEvent } from '../../shared/events.ts';
import { readCount } from './arguments.ts';
import type { Run } from './commands.ts';
import { followEvents } from './event-stream.ts';
import { eventLine } from './event-text.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { fetchEvents, findRuntime, type RuntimeChoice, runtimeChoice } from './runtime-client.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5000;

export const runEvents: Run = async (invocation, terminal) => {
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return usageError(invocation.command, choice.error.message, terminal);
  const limit = readCount(invocation, 'limit', 1, 5000);
  if (!limit.ok) return usageError(invocation.command, limit.error.message, terminal);

  const follow = invocation.flag('follow');
  const print = (event: LandlordEvent): void =>
    terminal.out(invocation.flag('json') ? JSON.stringify(event) : eventLine(event, Date.now(), terminal));
  const runtime = await findRuntime(choice.value);
  const count = limit.value ?? (follow ? 10 : 200);
  const events = runtime.ok ? await fetchEvents(runtime.value, { limit: String(count) }) : runtime;
  if (!events.ok) {
    terminal.err(`landlord events: ${plain(events.error.message)}`);
    return exitCodeOf(events.error);
  }
  for (const event of events.value) print(event);
  if (follow) return followForEver(choice.value, events.value.at(-1)?.id ?? 0, print, terminal);
  return EXIT.done;
};

/** Ends by a signal only: a runtime that goes away is waited for, and nothing of its log is missed. */
async function followForEver(
  choice: RuntimeChoice,
  afterId: number,
  print: (event: LandlordEvent) => void,
  terminal: Terminal,
): Promise<never> {
  let lastId = afterId;
  let retryMs = FIRST_RETRY_MS;
  let away = false;
  for (;;) {
    const runtime = await findRuntime(choice);
    if (runtime.ok) {
      if (away) terminal.err('landlord events: the runtime is back.');
      away = false;
      const begun = await followEvents(runtime.value, lastId, (event) => {
        lastId = event.id;
        print(event);
      });
      if (begun) retryMs = FIRST_RETRY_MS;
    } else if (!away) {
      away = true;
      terminal.err('landlord events: the runtime went away; waiting for it to come back.');
    }
    await sleep(retryMs);
    retryMs = Math.min(LONGEST_RETRY_MS, retryMs * 2);
  }
}
