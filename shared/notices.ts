/**
 * What a person is told outside the window, and when. Pure: each step takes what happened and gives
 * what to show now, and when to ask again.
 *
 *   event ──told at all?──► gathered by topic ──topic's hold is over, rate allows──► one notice
 *             │ no                 ▲                          │ no
 *             └─► nothing          └──────── waits ◄──────────┘
 *
 * Nothing that waits is shown late for its own sake: the window coming to the front, or quiet hours
 * beginning, drop it; the event log has it.
 */
import { type AppSettings, isQuiet } from './app-settings.ts';
import type { LandlordEvent } from './events.ts';
import { isNeeded, type NoticeTopic, topicOf, wordsOf } from './notice-words.ts';

export interface Notice {
  readonly title: string;
  readonly body: string;
  readonly urgency: 'low' | 'normal' | 'critical';
  /** Where a click leads; null: the window as it is. */
  readonly eventId: number | null;
}

interface Gathered {
  readonly topic: NoticeTopic;
  /** About what: a backend's name, a device's id; '' where all of a topic belong together. */
  readonly about: string;
  readonly events: readonly LandlordEvent[];
  /** Epoch ms from which it may be shown. */
  readonly readyAtMs: number;
}

export interface NoticeMemory {
  readonly waiting: readonly Gathered[];
  /** When a notice of each topic was shown last, by topic and about. */
  readonly shownAtMs: Readonly<Record<string, number>>;
  /** Times of the newest notices of any kind. */
  readonly recentMs: readonly number[];
  /** Backends whose loss was told: their return is told too. */
  readonly toldDown: readonly string[];
}

export const NO_NOTICES: NoticeMemory = { waiting: [], shownAtMs: {}, recentMs: [], toldDown: [] };

export interface NoticeStep {
  readonly memory: NoticeMemory;
  readonly show: readonly Notice[];
  /** Epoch ms; null: nothing waits. */
  readonly dueAtMs: number | null;
}

export interface NoticeInput {
  readonly events: readonly LandlordEvent[];
  readonly settings: Pick<AppSettings, 'notifications' | 'quietHours'>;
  readonly windowInFront: boolean;
  readonly nowMs: number;
}

/** Evictions come in runs, and a server that restarts is back before anybody need know. */
const HOLD_MS: Readonly<Record<NoticeTopic, number>> = {
  eviction: 2_000,
  backend: 6_000,
  memory: 0,
  driver: 0,
  lane: 0,
  config: 1_000,
  trouble: 1_000,
  model: 2_000,
};
/** The same topic again no sooner than this; what comes in between is gathered into the next. */
const TOPIC_EVERY_MS = 30_000;
/** At most this many in a minute, whatever they are about. */
const MOST_A_MINUTE = 4;
const MINUTE_MS = 60_000;

export function noticeStep(memory: NoticeMemory, input: NoticeInput): NoticeStep {
  const silent =
    input.windowInFront ||
    input.settings.notifications === 'none' ||
    isQuiet(input.settings.quietHours, input.nowMs);
  const gathered = input.events.reduce((known, event) => gather(known, event, input), {
    ...memory,
    waiting: silent ? [] : memory.waiting,
  });
  if (silent) {
    return { memory: { ...gathered, waiting: [], toldDown: [] }, show: [], dueAtMs: null };
  }
  return release(gathered, input.nowMs);
}

function gather(memory: NoticeMemory, event: LandlordEvent, input: NoticeInput): NoticeMemory {
  if (event.kind === 'backend_up') return backendBack(memory, event, input.nowMs);
  const topic = topicOf(event);
  if (topic === null) return memory;
  if (input.settings.notifications === 'needed' && !isNeeded(event)) return memory;
  return add(memory, topic, aboutOf(topic, event), event, input.nowMs);
}

function add(
  memory: NoticeMemory,
  topic: NoticeTopic,
  about: string,
  event: LandlordEvent,
  nowMs: number,
): NoticeMemory {
  const found = memory.waiting.find((one) => one.topic === topic && one.about === about);
  const grown: Gathered =
    found === undefined
      ? { topic, about, events: [event], readyAtMs: nowMs + HOLD_MS[topic] }
      : { ...found, events: [...found.events, event] };
  return { ...memory, waiting: [...memory.waiting.filter((one) => one !== found), grown] };
}

/** A loss that was not told yet never was; one that was told has an end worth telling. */
function backendBack(memory: NoticeMemory, event: LandlordEvent, nowMs: number): NoticeMemory {
  const about = event.backend ?? '';
  const waiting = memory.waiting.filter((one) => one.topic !== 'backend' || one.about !== about);
  if (!memory.toldDown.includes(about)) return { ...memory, waiting };
  const told = memory.toldDown.filter((name) => name !== about);
  return add({ ...memory, waiting, toldDown: told }, 'backend', about, event, nowMs);
}

function aboutOf(topic: NoticeTopic, event: LandlordEvent): string {
  switch (topic) {
    case 'backend':
    case 'lane':
      return event.backend ?? '';
    case 'memory':
    case 'driver':
      return event.deviceId ?? '';
    case 'trouble':
      return event.kind;
    default:
      return '';
  }
}

function release(memory: NoticeMemory, nowMs: number): NoticeStep {
  let recentMs = memory.recentMs.filter((atMs) => atMs <= nowMs && nowMs - atMs < MINUTE_MS);
  const shownAtMs: Record<string, number> = { ...memory.shownAtMs };
  const toldDown = new Set(memory.toldDown);
  const show: Notice[] = [];
  const waiting: Gathered[] = [];
  let dueAtMs = Number.POSITIVE_INFINITY;
  for (const one of memory.waiting) {
    const key = `${one.topic} ${one.about}`;
    const words = wordsOf(one.topic, one.events);
    // What gets worse is not held back by what was said of it before.
    const topicFreeMs =
      words.urgency === 'critical' ? 0 : (shownAtMs[key] ?? Number.NEGATIVE_INFINITY) + TOPIC_EVERY_MS;
    const rateFreeMs = recentMs.length < MOST_A_MINUTE ? 0 : (recentMs[0] ?? 0) + MINUTE_MS;
    const atMs = Math.max(one.readyAtMs, topicFreeMs, rateFreeMs);
    if (atMs > nowMs) {
      waiting.push(one);
      dueAtMs = Math.min(dueAtMs, atMs);
      continue;
    }
    show.push({ ...words, eventId: one.events.at(-1)?.id ?? null });
    recentMs = [...recentMs, nowMs];
    shownAtMs[key] = nowMs;
    if (one.topic === 'backend') {
      if (one.events.at(-1)?.kind === 'backend_down') toldDown.add(one.about);
    }
  }
  return {
    memory: { waiting, shownAtMs, recentMs, toldDown: [...toldDown] },
    show,
    dueAtMs: Number.isFinite(dueAtMs) ? dueAtMs : null,
  };
}
