import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { NaiveTerminal } from './naive-terminal.ts';
import type { CardReading } from './simulated-card.ts';
import type { StoryLine } from './stage.ts';

const MIB = 1_048_576;
/** Random weights say nothing: a taste is enough. */
const SHOWN_ANSWER_CHARS = 48;

export function prologue(facts: { readonly totalBytes: number; readonly naiveTokens: number }): StoryLine[] {
  return [
    { kind: 'act', text: 'Three agents, three models, one small card' },
    {
      kind: 'tell',
      text: `One agent writes, one reviews, one documents, each with a small model of its own, on a card of ${formatBytes(facts.totalBytes)}.`,
    },
    {
      kind: 'aside',
      text: `The card is simulated. The processes, the models (of random weights), their loads and the swaps are real. Each naive load reserves the keys and values of ${facts.naiveTokens} tokens up front.`,
    },
  ];
}

export function terminal(
  facts: Pick<NaiveTerminal, 'pid' | 'weightsBytes' | 'contextBytes' | 'missingBytes'> & {
    readonly name: string;
    readonly index: number;
    readonly card: CardReading;
  },
): StoryLine[] {
  const { name, index, pid, weightsBytes, contextBytes, missingBytes, card } = facts;
  const wants = `allocating ${(contextBytes / MIB).toFixed(2)} MiB on device 0`;
  const who = `Terminal ${index + 1} (${name}, pid ${pid})`;
  if (missingBytes === null)
    return [
      {
        kind: 'good',
        text: `${who}: ${formatBytes(weightsBytes)} of weights, then ${wants}: done. ${formatBytes(card.usedBytes)} of ${formatBytes(card.totalBytes)} is used.`,
      },
    ];
  return [
    {
      kind: 'bad',
      text: `${who}: ${formatBytes(weightsBytes)} of weights, then ${wants}: out of memory, ${formatBytes(missingBytes)} short. The process has ended.`,
    },
  ];
}

export function afterTerminals(alive: number, card: CardReading): StoryLine[] {
  return [
    {
      kind: 'tell',
      text: `${alive} of 3 agents ${alive === 1 ? 'is' : 'are'} alive, and holds ${formatBytes(card.usedBytes)} for a conversation that has not begun. Nobody kept account.`,
    },
  ];
}

export function socket(path: string): StoryLine[] {
  return [
    {
      kind: 'tell',
      text: 'Now one engine holds all three models. Each agent is booked before anything is loaded; a context that is not at work waits in host memory. By hand:',
    },
    { kind: 'code', text: `nc -U ${path}` },
  ];
}

export function exchange(line: string, answer: readonly string[]): StoryLine[] {
  return [
    { kind: 'event', text: line.replaceAll('\t', '<TAB>') },
    ...shortened(answer).map((text): StoryLine => ({ kind: 'code', text })),
  ];
}

/** What the fields of a turn's answer mean, the first time that each says something. */
export function firstSwaps(agent: string, answer: readonly string[], told: Set<string>): StoryLine[] {
  const [, evicted = 'none', restored = 'false'] =
    /kv_swap_evicted=(\S+) kv_swap_restored=(\S+)/.exec(answer.join('\n')) ?? [];
  const lines: StoryLine[] = [];
  if (evicted !== 'none' && !told.has('evicted'))
    lines.push({
      kind: 'tell',
      text: `There is room for one context: ${evicted} gave its own up for ${agent}. What ${evicted} had read and said waits in host memory.`,
    });
  if (restored === 'true' && !told.has('restored'))
    lines.push({
      kind: 'good',
      text: `${agent} is back with all that was said before, bit for bit, and nothing of it was read again.`,
    });
  if (evicted !== 'none') told.add('evicted');
  if (restored === 'true') told.add('restored');
  return lines;
}

export function beforeFigures(): StoryLine[] {
  return [
    {
      kind: 'tell',
      text: 'The whole card, and who has what of it: weights stay, one context is on the device, the others wait in host memory.',
    },
  ];
}

/** Protocol lines as they are, what the model said in short. */
function shortened(answer: readonly string[]): readonly string[] {
  const begin = answer.indexOf('BEGIN_RESPONSE');
  if (begin < 0) return answer;
  const said = answer
    .slice(begin + 1, -1)
    .join(' ')
    .replace(/[^\p{L}\p{N}\p{P} ]/gu, '·');
  return [...answer.slice(0, begin + 1), said.slice(0, SHOWN_ANSWER_CHARS), 'END_RESPONSE'];
}

export function ending(facts: {
  readonly alive: number;
  readonly agents: number;
  readonly restored: number;
  readonly bookedBytes: number;
  readonly switchMs: number | null;
}): StoryLine[] {
  const { alive, agents, restored, bookedBytes, switchMs } = facts;
  const lastSwitch = switchMs === null ? '' : `, the last in ${formatDuration(switchMs)}`;
  return [
    { kind: 'act', text: 'What it came to' },
    { kind: 'bad', text: `Three processes: ${alive} of ${agents} alive.` },
    {
      kind: 'good',
      text: `One engine: ${agents} of ${agents} registered, ${formatBytes(bookedBytes)} booked, ${restored} conversations brought back from host memory and continued${lastSwitch}.`,
    },
    {
      kind: 'aside',
      text: 'With `landlord serve` running, the socket is landlord.sock in its state folder; HELP lists what it knows.',
    },
  ];
}
