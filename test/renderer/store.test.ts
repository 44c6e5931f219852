import { describe, expect, it } from 'vitest';
import {
  createReplica,
  MAX_EVENTS,
  mergeEvents,
  type ReplicaHandle,
  type ReplicaWorld,
  SILENCE_MS,
  type StreamHandlers,
} from '../../renderer/store.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { loadState } from '../support/states.ts';

const { state, events } = loadState('fine');

interface OpenStream {
  readonly handlers: StreamHandlers;
  closed: boolean;
}

/** A world in which time passes only when told, and every stream is at hand. */
class FakeWorld implements ReplicaWorld {
  nowMs = 1_000_000;
  readonly streams: OpenStream[] = [];
  readonly order: string[] = [];
  answer: Awaited<ReturnType<ReplicaWorld['fetchEvents']>> = [];
  timers: { readonly atMs: number; readonly run: () => void }[] = [];

  openStream(handlers: StreamHandlers): { close(): void } {
    this.order.push('stream');
    const stream: OpenStream = { handlers, closed: false };
    this.streams.push(stream);
    return {
      close: () => {
        stream.closed = true;
      },
    };
  }
  async fetchEvents(): ReturnType<ReplicaWorld['fetchEvents']> {
    this.order.push('events');
    return this.answer;
  }
  now(): number {
    return this.nowMs;
  }
  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.nowMs + delayMs, run };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((entry) => entry !== timer);
    };
  }
  pass(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const due = this.timers.filter((timer) => timer.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.timers = this.timers.filter((timer) => timer !== due);
      this.nowMs = due.atMs;
      due.run();
    }
    this.nowMs = untilMs;
  }
  get last(): StreamHandlers {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no stream was opened');
    return stream.handlers;
  }
}

function started(): { readonly world: FakeWorld; readonly replica: ReplicaHandle } {
  const world = new FakeWorld();
  const replica = createReplica(world);
  replica.start();
  return { world, replica };
}

const snapshot = (revision: number): string => JSON.stringify({ ...state, revision });

describe('replica: a read-only copy of the state', () => {
  it('subscribes first and asks for events then, so that none falls between', () => {
    const { world, replica } = started();
    expect(world.order).toEqual(['stream', 'events']);
    expect(replica.store.getState()).toEqual({ connection: { kind: 'connecting' }, state: null, events: [] });
  });

  it('takes newer snapshots and drops older and equal ones', () => {
    const { world, replica } = started();
    world.last.onState(snapshot(10));
    expect(replica.store.getState().connection.kind).toBe('live');
    const ten = replica.store.getState().state;
    world.last.onState(snapshot(9));
    expect(replica.store.getState().state).toBe(ten);
    world.last.onState(snapshot(10));
    expect(replica.store.getState().state).toBe(ten);
    world.last.onState(snapshot(11));
    expect(replica.store.getState().state?.revision).toBe(11);
  });

  it('takes no notice of what is no state', () => {
    const { world, replica } = started();
    for (const data of [
      '',
      '{',
      'null',
      '{"schema":"other","revision":99}',
      '{"schema":"vram-landlord/state/1"}',
    ]) {
      world.last.onState(data);
      world.last.onEvent(data);
    }
    expect(replica.store.getState().state).toBeNull();
    expect(replica.store.getState().events).toEqual([]);
  });

  it('begins anew with a restarted runtime, whose revisions start over', () => {
    const { world, replica } = started();
    world.last.onState(snapshot(5000));
    world.last.onBroken();
    world.pass(500);
    world.last.onState(snapshot(3));
    expect(replica.store.getState().state?.revision).toBe(3);
    expect(replica.store.getState().connection.kind).toBe('live');
  });
});

describe('replica: a lost connection', () => {
  it('is shown with its age, and what was known stays to be seen', () => {
    const { world, replica } = started();
    world.last.onState(snapshot(10));
    world.pass(7000);
    const lostAtMs = world.nowMs;
    world.last.onBroken();
    world.pass(30_000);
    expect(replica.store.getState().connection).toEqual({ kind: 'lost', sinceMs: lostAtMs });
    expect(replica.store.getState().state?.revision).toBe(10);
  });

  it('is tried again with growing pauses, at most 10 s, and soon again after success', () => {
    const { world } = started();
    world.last.onState(snapshot(1));
    const pauses: number[] = [];
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const count = world.streams.length;
      world.last.onBroken();
      const fromMs = world.nowMs;
      while (world.streams.length === count) world.pass(100);
      pauses.push(world.nowMs - fromMs);
    }
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
    world.last.onState(snapshot(2));
    const count = world.streams.length;
    world.last.onBroken();
    world.pass(500);
    expect(world.streams.length).toBe(count + 1);
  });

  it('is noticed by silence alone, as a suspended machine sees no error', () => {
    const { world, replica } = started();
    world.last.onState(snapshot(1));
    world.pass(SILENCE_MS - 1);
    world.last.onState(snapshot(2));
    world.pass(SILENCE_MS - 1);
    expect(replica.store.getState().connection.kind).toBe('live');
    world.pass(1);
    expect(replica.store.getState().connection.kind).toBe('lost');
  });

  it('takes nothing more from a stream it has given up', () => {
    const { world, replica } = started();
    const old = world.last;
    old.onState(snapshot(10));
    old.onBroken();
    expect(world.streams[0]?.closed).toBe(true);
    world.pass(500);
    old.onState(snapshot(99));
    old.onBroken();
    expect(replica.store.getState().state?.revision).toBe(10);
    expect(world.streams.length).toBe(2);
  });

  it('is told apart from a page that may not read any more', async () => {
    const { world, replica } = started();
    world.last.onState(snapshot(1));
    world.answer = 'refused';
    world.last.onBroken();
    world.pass(500);
    await Promise.resolve();
    await Promise.resolve();
    world.last.onBroken();
    expect(replica.store.getState().connection.kind).toBe('locked');
  });

  it('is tried at once when the page is shown again, and never after it was stopped', () => {
    const { world, replica } = started();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      world.last.onBroken();
      world.pass(10_000);
    }
    const count = world.streams.length;
    world.last.onBroken();
    replica.retryNow();
    expect(world.streams.length).toBe(count + 1);
    replica.stop();
    replica.retryNow();
    world.pass(60_000);
    expect(world.streams.length).toBe(count + 1);
    expect(world.streams.at(-1)?.closed).toBe(true);
  });
});

describe('replica: events', () => {
  const event = (id: number): LandlordEvent => ({
    id,
    at: state.at,
    kind: 'loaded',
    reason: `Event ${id}.`,
    numbers: {},
  });

  it('come from the list and from the stream, each once and in order', async () => {
    const world = new FakeWorld();
    world.answer = [event(1), event(2), event(3)];
    const replica = createReplica(world);
    replica.start();
    world.last.onEvent(JSON.stringify(event(3)));
    world.last.onEvent(JSON.stringify(event(4)));
    await Promise.resolve();
    await Promise.resolve();
    expect(replica.store.getState().events.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
  });

  it('are not kept for ever, and a known one changes nothing', () => {
    const many = Array.from({ length: MAX_EVENTS + 20 }, (_, index) => event(index));
    const kept = mergeEvents([], many);
    expect(kept).toHaveLength(MAX_EVENTS);
    expect(kept.at(-1)?.id).toBe(MAX_EVENTS + 19);
    expect(mergeEvents(events, [...events])).toBe(events);
  });
});
