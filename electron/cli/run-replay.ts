import { formatBytes, formatDuration } from '../../shared/format.ts';
import { type ArgsOf, QUESTIONS } from '../../shared/ipc-schema.ts';
import type { Replay, ReplayRun } from '../../shared/questions.ts';
import { replayRows, replaySentence } from '../../shared/replay-text.ts';
import { parseBytes, parseDuration } from '../core/settings/units.ts';
import type { Run } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { ask, findRuntime, runtimeChoice } from './runtime-client.ts';
import { plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

const TWO_DAYS_MS = 48 * 3_600_000;

/** Recorded days under another policy: the same that the window's history shows. */
export const runReplay: Run = async (invocation, terminal) => {
  const wrong = (message: string): number => usageError(invocation.command, message, terminal);
  const choice = runtimeChoice(invocation);
  if (!choice.ok) return wrong(choice.error.message);
  const floorText = invocation.text('floor');
  const floor = floorText === null ? null : parseBytes(floorText);
  if (floor !== null && !floor.ok) return wrong(`--floor is no amount of memory; ${floor.hint}.`);
  const lastText = invocation.text('last');
  const last = lastText === null ? null : parseDuration(lastText);
  if (last !== null && !last.ok) return wrong(`--last is no duration; ${last.hint}.`);
  const bigText = invocation.text('max-big');
  if (bigText !== null && bigText !== 'fit' && !/^[1-9]\d?$/.test(bigText))
    return wrong(`--max-big takes fit, or a number from 1 to 64, not ${bigText}.`);

  const runtime = await findRuntime(choice.value);
  const question: ArgsOf<'replay'> = {
    fromMs: Math.max(0, Date.now() - (last?.value ?? TWO_DAYS_MS)),
    deviceId: invocation.text('device'),
    floorBytes: floor?.value ?? null,
    maxBig: bigText === null ? null : bigText === 'fit' ? 0 : Number(bigText),
  };
  const answer = runtime.ok
    ? await ask(runtime.value, 'POST', `/api/${QUESTIONS.replay}`, { ...question })
    : runtime;
  if (!answer.ok) {
    terminal.err(`landlord replay: ${plain(answer.error.message)}`);
    return exitCodeOf(answer.error);
  }
  if (!isReplay(answer.value)) {
    terminal.err('landlord replay: the runtime is of another version than this command; restart it.');
    return EXIT.noRuntime;
  }
  if (invocation.flag('json')) terminal.out(JSON.stringify(answer.value));
  else print(answer.value, terminal);
  return EXIT.done;
};

function print(replay: Replay, terminal: Terminal): void {
  const { present, asked } = replay;
  terminal.out(`${replay.deviceId}, over ${formatDuration(replay.toMs - replay.fromMs)} of record`);
  terminal.out(`As set now (${policyText(present)}): ${replaySentence(present)}`);
  if (policyText(asked) === policyText(present)) {
    terminal.out('Nothing else was asked for: --floor 6GB or --max-big 1 runs the same days another way.');
  } else {
    terminal.out(`So (${policyText(asked)}): ${replaySentence(asked)}`);
  }
  terminal.out('');
  const rows = replayRows(replay);
  const width = Math.max(...rows.map((row) => row.name.length));
  terminal.out(`${' '.repeat(width)}  ${'now'.padStart(10)}  ${'so'.padStart(10)}`);
  for (const row of rows)
    terminal.out(`${row.name.padEnd(width)}  ${row.present.padStart(10)}  ${row.asked.padStart(10)}`);
  for (const { model, evictions, reloads } of asked.models)
    terminal.out(`  ${plain(model)}: unloaded ${evictions}, loaded again ${reloads}`);
  for (const note of replay.notes) terminal.out(plain(note));
}

function policyText({ floorBytes, maxBig }: ReplayRun): string {
  return `floor ${formatBytes(floorBytes)}, ${maxBig === 'fit' ? 'as many big models as fit' : `${maxBig} big at a time`}`;
}

function isReplay(value: unknown): value is Replay {
  return typeof value === 'object' && value !== null && 'present' in value && 'asked' in value;
}
