import type { LandlordEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { Answer } from './demo-router.ts';
import type { StoryLine } from './stage.ts';

/**
 * The sentences of the demo. Every figure comes in as an argument, read or measured in this run; what
 * is background, from the article the morning is taken from, says that it is.
 */

const tell = (text: string): StoryLine => ({ kind: 'tell', text });
const aside = (text: string): StoryLine => ({ kind: 'aside', text });
const good = (text: string): StoryLine => ({ kind: 'good', text });
const bad = (text: string): StoryLine => ({ kind: 'bad', text });

/** An event as the log has it. */
export function eventLine(event: LandlordEvent): StoryLine {
  return { kind: 'event', text: `${event.kind}: ${event.reason}` };
}

/** Who plays the router: a real llama-server, or stand-ins, with why. */
export type Players =
  | { readonly real: true; readonly version: string }
  | { readonly real: false; readonly why: 'none found' | 'asked for' };

export function prologue(facts: {
  readonly totalBytes: number | null;
  readonly players: Players;
  readonly loadMs: number;
  readonly url: string;
}): readonly StoryLine[] {
  const { players } = facts;
  const standIns =
    'small stand-in processes play the router and its models, and the story is a little shorter.';
  const played = players.real
    ? `The models are small ones in a real llama.cpp router (llama-server ${players.version}): real processes that are loaded, asked, unloaded and killed.`
    : players.why === 'asked for'
      ? `As you asked, ${standIns}`
      : `No llama-server was found here, so ${standIns} \`node build/fetch-llama-server.mjs\` fetches a real one.`;
  return [
    tell(
      `One graphics card of ${formatBytes(facts.totalBytes)} drives the monitor and runs language models. All share its memory, and when it is full the driver moves somebody's memory out to system RAM, which is slow at best.`,
    ),
    aside(
      `Only the card and the desktop are simulated. ${played} A big model's load is held up for ${formatDuration(facts.loadMs)}, as long as a real one takes before it asks for its memory.`,
    ),
    tell(`Watch it live (opens once): ${facts.url}`),
  ];
}

export function residents(facts: {
  readonly desktopBytes: number | null;
  readonly nine: { readonly name: string; readonly bytes: number | null };
  readonly embedder: { readonly name: string; readonly bytes: number | null };
  readonly freeBytes: number | null;
}): readonly StoryLine[] {
  const { nine, embedder } = facts;
  return [
    tell(
      `The desktop (compositor, browser, music player) uses ${formatBytes(facts.desktopBytes)}. Two small models that are always there are loaded: ${nine.name} (${formatBytes(nine.bytes)}) and ${embedder.name} (${formatBytes(embedder.bytes)}). ${formatBytes(facts.freeBytes)} is free.`,
    ),
  ];
}

export interface Fill {
  readonly model: string;
  readonly modelBytes: number | null;
  readonly answer: Answer;
  readonly usedBytes: number | null;
  readonly totalBytes: number | null;
  readonly freeBytes: number | null;
}

export function filled(facts: Fill): readonly StoryLine[] {
  return [
    tell(
      `Somebody asks ${facts.model}, a big model. It loads, takes ${formatBytes(facts.modelBytes)} and answers after ${formatDuration(facts.answer.tookMs)}. Now ${formatBytes(facts.usedBytes)} of ${formatBytes(facts.totalBytes)} is used: ${formatBytes(facts.freeBytes)} is left for the desktop.`,
    ),
  ];
}

export function wouldHave(event: LandlordEvent): readonly StoryLine[] {
  return [
    tell('VRAM Landlord only watches now, and says what its guards would have done:'),
    eventLine(event),
  ];
}

export function idleNote(idleMs: number): StoryLine {
  return aside(
    `(Idle after ${formatDuration(idleMs)} here, so that you need not wait; ${formatDuration(180_000)} unless you set it.)`,
  );
}

export interface PushedOut {
  readonly askedBytes: number;
  readonly freeBeforeBytes: number | null;
  readonly gttBytes: number | null;
  readonly overMs: number;
}

export function askingForMore(
  facts: Pick<PushedOut, 'askedBytes' | 'freeBeforeBytes'>,
): readonly StoryLine[] {
  return [
    tell(
      `Then the music player asks for ${formatBytes(facts.askedBytes)} more; ${formatBytes(facts.freeBeforeBytes)} is free.`,
    ),
  ];
}

export function pushedOut(facts: PushedOut, event: LandlordEvent): readonly StoryLine[] {
  return [
    eventLine(event),
    bad(
      `For a music player's ${formatBytes(facts.askedBytes)}, ${formatBytes(facts.gttBytes)} of model memory went out to system RAM within ${formatDuration(facts.overMs)}, and it goes on.`,
    ),
    aside(
      'On the machine this morning is taken from, the driver got stuck half-way, and every model and the player hung.',
    ),
  ];
}

export function stoppedByHand(facts: {
  readonly model: string;
  readonly tookMs: number;
  readonly freeBytes: number | null;
}): readonly StoryLine[] {
  return [
    tell(
      `What helped was to stop ${facts.model} by hand: ${formatDuration(facts.tookMs)} later ${formatBytes(facts.freeBytes)} is free again.`,
    ),
  ];
}

export function reading(facts: {
  readonly reader: string;
  readonly readerBytes: number | null;
  readonly freeBytes: number | null;
  readonly big: string;
  readonly bigBytes: number;
}): readonly StoryLine[] {
  return [
    tell(
      `Later ${facts.reader} (${formatBytes(facts.readerBytes)}) reads a page, one long request; ${formatBytes(facts.freeBytes)} is free. Somebody asks ${facts.big}, which needs ${formatBytes(facts.bigBytes)}.`,
    ),
  ];
}

export interface LostRace {
  readonly reader: string;
  readonly big: string;
  readonly answer: Answer;
  readonly missingBytes: number | null;
  /** From being asked to unload until its process was gone; null: not waited for. */
  readonly readerGoneMs: number | null;
}

/** The loser's side of it is known only later; see `readerGone`. */
export function lostRace(facts: LostRace): readonly StoryLine[] {
  const missing = facts.missingBytes === null ? '' : ` ${formatBytes(facts.missingBytes)} was missing.`;
  return [
    tell(
      `The router is asked to stop ${facts.reader} at once. In the middle of a request it does not listen, and keeps its memory.`,
    ),
    bad(
      `${facts.big} asks for its memory and does not get it.${missing} Its request fails after ${formatDuration(facts.answer.tookMs)} with ${statusText(facts.answer)}.`,
    ),
  ];
}

export function readerGone(facts: LostRace): readonly StoryLine[] {
  if (facts.readerGoneMs === null) return [];
  return [
    tell(
      `The router ends ${facts.reader} by force ${formatDuration(facts.readerGoneMs)} after it was asked to. Too late: ${facts.big} had failed long before.`,
    ),
  ];
}

export function statusText(answer: Answer): string {
  const what = answer.status === null ? 'a cut connection' : `HTTP ${answer.status}`;
  return answer.error === null ? what : `${what} (${answer.error})`;
}

export interface LeftForRoom {
  readonly model: string;
  readonly askedBytes: number;
  readonly freeBeforeBytes: number | null;
  readonly freeAfterBytes: number | null;
  readonly gttBytes: number | null;
}

export function leftForRoom(facts: LeftForRoom): readonly StoryLine[] {
  return [
    good(
      `The music player asks for its ${formatBytes(facts.askedBytes)} and gets it: ${formatBytes(facts.freeBeforeBytes)} was free because ${facts.model} had left, ${formatBytes(facts.freeAfterBytes)} still is. Moved out to system RAM: ${formatBytes(facts.gttBytes)}.`,
    ),
  ];
}

export interface MadeWay {
  readonly reader: string;
  readonly pid: number | null;
  readonly event: LandlordEvent;
  /** From being asked to unload until its process was gone. */
  readonly readerGoneMs: number | null;
}

export function madeWay(facts: MadeWay): readonly StoryLine[] {
  const { event, reader } = facts;
  const gone = formatDuration(facts.readerGoneMs);
  const process = facts.pid === null ? 'its process' : `its process ${facts.pid}`;
  return [
    eventLine(event),
    tell(
      event.kind === 'killed'
        ? `${reader} was asked to unload at once and did not listen. So ${process}, proven by port, name and parent, was killed: gone ${gone} after it was asked.`
        : `${reader} was asked to unload at once and was gone ${gone} later.`,
    ),
  ];
}

export interface WonRace extends MadeWay {
  readonly big: string;
  readonly answer: Answer;
}

export function wonRace(facts: Pick<WonRace, 'big' | 'answer'>): readonly StoryLine[] {
  return [
    good(
      `${facts.big} got its memory and answered its first request in ${formatDuration(facts.answer.tookMs)}. The page that was cut is read again when it is next asked for.`,
    ),
  ];
}

/** What one of the two mornings came to. */
export interface Morning {
  readonly freeWhenAskedBytes: number | null;
  readonly gttBytes: number | null;
  readonly bigAnswer: Answer;
  readonly readerGoneMs: number | null;
}

/** Three lines, each a figure of both. */
export function ending(
  names: { readonly big: string; readonly reader: string },
  off: Morning,
  on: Morning,
): readonly StoryLine[] {
  const outcome = ({ status, tookMs }: Answer): string => {
    const what = status === 200 ? 'an answer' : status === null ? 'a cut connection' : `HTTP ${status}`;
    return `${what} after ${formatDuration(tookMs)}`;
  };
  const out = (bytes: number | null): string =>
    bytes === 0 ? 'nothing pushed out' : `${formatBytes(bytes)} pushed out to system RAM`;
  const back = (ms: number | null): string => (ms === null ? 'too late' : `after ${formatDuration(ms)}`);
  return [
    { kind: 'act', text: 'What was different' },
    tell(
      `The music player's wish: ${formatBytes(off.freeWhenAskedBytes)} free, ${out(off.gttBytes)}. With the guards: ${formatBytes(on.freeWhenAskedBytes)} free, ${out(on.gttBytes)}.`,
    ),
    tell(
      `The request to ${names.big}: ${outcome(off.bigAnswer)}. With the guards: ${outcome(on.bigAnswer)}.`,
    ),
    tell(
      `The memory of ${names.reader} once it was asked to stop: back ${back(off.readerGoneMs)}. With the guards: ${back(on.readerGoneMs)}.`,
    ),
  ];
}

export function whatNext(): readonly StoryLine[] {
  const code = (text: string): StoryLine => ({ kind: 'code', text });
  return [
    tell(
      '`npm start` does this for your card. Servers it finds are only watched until you say on. To name yours, write in ~/.config/vram-landlord/config.yaml:',
    ),
    code('backends:'),
    code('  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:8080" }'),
    code('small: [pipeline-9b, bge-m3]   # your models that are always there'),
  ];
}
