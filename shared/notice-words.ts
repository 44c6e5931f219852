/** Which events a person is told of outside the window, and in which words. Pure. */
import { assertNever } from './errors.ts';
import type { LandlordEvent } from './events.ts';
import type { Notice } from './notices.ts';
import { shortModel } from './tray-agents.ts';
import { plainBytes } from './tray-lines.ts';

/** Notices of one topic are gathered into one. */
export type NoticeTopic =
  | 'eviction'
  | 'memory'
  | 'driver'
  | 'lane'
  | 'backend'
  | 'config'
  | 'model'
  | 'trouble';

/** null: it belongs in the log alone. Denials and deflections are told to who asked, in the answer. */
export function topicOf(event: LandlordEvent): NoticeTopic | null {
  switch (event.kind) {
    case 'evicted':
    case 'killed':
    case 'would_evict':
    case 'eviction_failed':
    case 'freed_nothing':
      return 'eviction';
    case 'floor_threatened':
      return 'memory';
    case 'driver_eviction':
      return 'driver';
    case 'lane_stuck':
      return 'lane';
    case 'backend_down':
      return 'backend';
    case 'config_rejected':
      return 'config';
    case 'load_failed':
    case 'model_crashed':
      return 'model';
    case 'driver_trouble':
    case 'device_lost':
    case 'storage_failed':
    case 'signal_refused':
    case 'orphan_found':
      return 'trouble';
    default:
      return null;
  }
}

/** What cut a turn, or what the guards can't put right by themselves. */
export function isNeeded(event: LandlordEvent): boolean {
  switch (event.kind) {
    case 'evicted':
    case 'killed':
      return cutATurn(event);
    case 'floor_threatened':
      return isUnderHardFloor(event);
    case 'would_evict':
    case 'load_failed':
      return false;
    default:
      return topicOf(event) !== null;
  }
}

/** A kill may have cut one even where nobody could tell. */
export function cutATurn(event: LandlordEvent): boolean {
  return (
    event.kind === 'killed' || (event.kind === 'evicted' && event.reason.includes('cut off mid-request'))
  );
}

function isUnderHardFloor(event: LandlordEvent): boolean {
  const { freeBytes, hardFloorBytes } = event.numbers;
  return freeBytes != null && hardFloorBytes != null && freeBytes < hardFloorBytes;
}

/** One notice for a run of events of one topic, oldest first; there is at least one. */
export function wordsOf(topic: NoticeTopic, events: readonly LandlordEvent[]): Omit<Notice, 'eventId'> {
  const last = events.at(-1);
  if (last === undefined) return { title: '', body: '', urgency: 'low' };
  switch (topic) {
    case 'eviction':
      return evictionWords(events, last);
    case 'memory':
      return isUnderHardFloor(last)
        ? { title: 'The desktop is short of memory', body: last.reason, urgency: 'critical' }
        : { title: 'Memory is getting short', body: last.reason, urgency: 'normal' };
    case 'driver':
      return { title: 'The driver is moving memory out', body: last.reason, urgency: 'critical' };
    case 'lane':
      return {
        title: `A turn is stuck on ${last.backend ?? 'a lane'}`,
        body: last.reason,
        urgency: 'normal',
      };
    case 'backend':
      return last.kind === 'backend_up'
        ? { title: `${last.backend ?? 'The server'} answers again`, body: last.reason, urgency: 'low' }
        : { title: `${last.backend ?? 'A server'} does not answer`, body: last.reason, urgency: 'normal' };
    case 'config':
      return { title: 'The settings were not taken', body: last.reason, urgency: 'normal' };
    case 'model':
      return modelWords(events, last);
    case 'trouble':
      return {
        title: 'VRAM Landlord needs a look',
        body: last.reason,
        urgency: last.kind === 'orphan_found' ? 'normal' : 'critical',
      };
    default:
      return assertNever(topic, 'topic');
  }
}

function evictionWords(events: readonly LandlordEvent[], last: LandlordEvent): Omit<Notice, 'eventId'> {
  const left = events.filter((event) => event.kind === 'evicted' || event.kind === 'killed');
  const urgency = events.some(cutATurn) ? 'critical' : 'normal';
  const [only] = left;
  if (events.length === 1 || (left.length === 1 && only === last)) {
    return { title: evictionTitle(last), body: last.reason, urgency };
  }
  if (left.length === 0) return { title: evictionTitle(last), body: last.reason, urgency };
  const names = [...new Set(left.map(nameOf))];
  const contexts = [...new Set(left.filter(isContext).map(nameOf))].length;
  const freed = left.reduce<number | null>((sum, event) => {
    const { freedBytes } = event.numbers;
    return sum === null || freedBytes == null ? null : sum + freedBytes;
  }, 0);
  const back = freed === null ? '' : ` ${plainBytes(freed)} came back.`;
  const others = events.length - left.length;
  const more = others === 0 ? '' : ` ${others} more in the log.`;
  const [one] = left;
  const title =
    names.length === 1 && one !== undefined
      ? evictionTitle(one)
      : `${[counted(names.length - contexts, 'model'), counted(contexts, 'context')].filter((part) => part !== '').join(' and ')} were unloaded`;
  return { title, body: `${names.join(', ')}.${back} Last: ${last.reason}${more}`, urgency };
}

function counted(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** An agent's context moved out: its model stays, and nothing of it is lost. */
function isContext(event: LandlordEvent): boolean {
  return event.kind === 'evicted' && event.session !== undefined;
}

function evictionTitle(event: LandlordEvent): string {
  const name = nameOf(event);
  if (isContext(event)) return `${name} was moved out`;
  switch (event.kind) {
    case 'killed':
      return `${name} was ended`;
    case 'would_evict':
      return `${name} would have been unloaded`;
    case 'eviction_failed':
      return `${name} could not be unloaded`;
    case 'freed_nothing':
      return `${name} left, and its memory did not`;
    default:
      return `${name} was unloaded`;
  }
}

function modelWords(events: readonly LandlordEvent[], last: LandlordEvent): Omit<Notice, 'eventId'> {
  const names = [...new Set(events.map(nameOf))];
  const verb = last.kind === 'model_crashed' ? 'ended by itself' : 'could not be loaded';
  return {
    title: names.length === 1 ? `${names[0]} ${verb}` : `${names.length} models failed`,
    body: last.reason,
    urgency: 'normal',
  };
}

function nameOf(event: LandlordEvent): string {
  if (isContext(event)) return `The context of ${event.session}`;
  if (event.model !== undefined) return shortModel(event.model);
  return event.backend === 'embedded' ? 'The embedded engine' : 'A model';
}
