import { afterEach, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../../electron/core/http/server.ts';
import { createFakeRuntime, type FakeRuntime, sampleModel } from '../../support/fake-runtime.ts';
import { openStream, type StreamReader } from '../../support/http-request.ts';
import { BEARER, handClock, serveFake } from '../../support/serve-fake.ts';

let server: HttpServer;
let runtime: FakeRuntime;
const readers: StreamReader[] = [];

async function start(options: Parameters<typeof serveFake>[0] = {}): Promise<void> {
  ({ server, runtime } = await serveFake(options));
}

async function read(path: string, headers: Record<string, string> = {}): Promise<StreamReader> {
  const reader = await openStream(server.port, path, { ...BEARER, ...headers });
  readers.push(reader);
  return reader;
}

function ids(reader: StreamReader): readonly number[] {
  return reader.frames.filter((frame) => frame.id !== null).map((frame) => Number(frame.id));
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

async function waitFor(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close();
  await server.stop();
});

describe('the event stream', () => {
  it('sends what happens from now on, each with its id, and nothing of before', async () => {
    await start();
    runtime.append({});
    const reader = await read('/api/events');
    const event = runtime.append({ kind: 'evicted', reason: 'It had to go.' });
    await reader.until(() => reader.frames.length === 1);
    expect(reader.frames).toEqual([{ event: null, id: '2', data: JSON.stringify(event) }]);
  });

  it('resumes after Last-Event-ID, over several pages and a gap, and goes on live', async () => {
    await start();
    for (let count = 0; count < 5000; count += 1) runtime.append({});
    runtime.forgetEventsBefore(3501);
    const reader = await read('/api/events', { 'last-event-id': '7' });
    await reader.until(() => reader.frames.length === 1500);
    runtime.append({});
    await reader.until(() => reader.frames.length === 1501);
    expect(ids(reader)).toEqual(range(3501, 5001));
  });

  it('loses and repeats nothing that happens while it replays', async () => {
    await start();
    for (let count = 0; count < 1200; count += 1) runtime.append({});
    const events = runtime.events.bind(runtime);
    runtime.events = async (query) => {
      const found = await events(query);
      if (runtime.queries.length <= 6 && runtime.queries.length > 0)
        for (let count = 0; count < 3; count += 1) runtime.append({});
      return found;
    };
    const reader = await read('/api/events', { 'last-event-id': '0' });
    await reader.until(() => ids(reader).at(-1) === 1218);
    expect(ids(reader)).toEqual(range(1, 1218));
  });

  it('reads an id that is not a number as none', async () => {
    await start();
    runtime.append({});
    const reader = await read('/api/events', { 'last-event-id': 'latest' });
    runtime.append({});
    await reader.until(() => reader.frames.length === 1);
    expect(ids(reader)).toEqual([2]);
  });

  it('goes on with a new log, which counts from 1 again', async () => {
    await start();
    const reader = await read('/api/events', { 'last-event-id': '900' });
    await waitFor(() => runtime.queries.length > 1);
    runtime.append({});
    runtime.append({});
    await reader.until(() => reader.frames.length === 2);
    expect(ids(reader)).toEqual([1, 2]);
  });

  it('goes on live when the log cannot be read', async () => {
    await start();
    runtime.append({});
    runtime.failEvents = true;
    const reader = await read('/api/events', { 'last-event-id': '0' });
    await waitFor(() => runtime.queries.length > 0);
    runtime.append({});
    await reader.until(() => reader.frames.length > 0);
    expect(ids(reader)).toEqual([2]);
  });

  it('lets go of the runtime when the reader leaves', async () => {
    await start();
    const before = runtime.eventListeners();
    const reader = await read('/api/stream');
    await waitFor(() => runtime.eventListeners() === before + 1 && runtime.stateListeners() === 1);
    reader.close();
    await waitFor(() => runtime.eventListeners() === before && runtime.stateListeners() === 0);
    expect(runtime.stateListeners()).toBe(0);
  });
});

describe('the window’s stream', () => {
  it('begins with a snapshot, then sends the newest of each interval only', async () => {
    const clock = handClock();
    await start({ clock, stateIntervalMs: 30 });
    const reader = await read('/api/stream');
    await reader.until(() => reader.frames.length === 1);
    for (let count = 0; count < 50; count += 1) runtime.publish({});
    clock.advance(30);
    await reader.until(() => reader.frames.length === 2);
    const revisions = reader.frames.map((frame) => JSON.parse(frame.data).revision);
    expect(revisions).toEqual([1, 51]);
    expect(reader.frames.map((frame) => frame.event)).toEqual(['state', 'state']);
  });

  it('drops a snapshot that is not newer', async () => {
    await start({ stateIntervalMs: 1 });
    const reader = await read('/api/stream');
    await reader.until(() => reader.frames.length === 1);
    runtime.publish({ revision: 1 });
    const stale = { ...runtime.state(), revision: 1 };
    expect(stale.revision).toBe(1);
    await reader.until(() => reader.frames.length === 2);
    expect(JSON.parse(reader.frames[1]?.data ?? '').revision).toBe(2);
  });

  it('carries events beside the snapshots', async () => {
    await start();
    const reader = await read('/api/stream');
    runtime.append({ kind: 'denied' });
    await reader.until(() => reader.frames.some((frame) => frame.event === 'event'));
    expect(reader.frames.find((frame) => frame.event === 'event')).toMatchObject({ id: '1' });
  });

  it('skips snapshots for a reader that stopped, and gives it every event and the newest state after', async () => {
    const fat = createFakeRuntime();
    fat.publish({ models: range(1, 400).map((index) => sampleModel({ id: `router/model-${index}` })) });
    await start({ runtime: fat, stateIntervalMs: 0 });
    const reader = await read('/api/stream');
    await reader.until(() => reader.frames.length === 1);
    reader.pause();
    for (let step = 0; step < 300; step += 1) {
      for (let count = 0; count < 10; count += 1) fat.append({ reason: 'x'.repeat(500) });
      fat.publish({});
      await new Promise((resolve) => setImmediate(resolve));
    }
    reader.resume();
    await reader.until(() => ids(reader).at(-1) === 3000);
    const states = (): readonly number[] =>
      reader.frames
        .filter((frame) => frame.event === 'state')
        .map((frame) => JSON.parse(frame.data).revision);
    await reader.until(() => states().at(-1) === fat.state().revision);
    expect(ids(reader)).toEqual(range(1, 3000));
    // 300 snapshots of 180 kB do not fit into the sockets; what did not fit was dropped.
    expect(states().length).toBeLessThan(150);
    expect(states()).toEqual([...states()].sort((a, b) => a - b));
  });

  it('cuts off a reader that takes nothing for too long', async () => {
    await start({ blockedLimitMs: 50 });
    const reader = await read('/api/events');
    reader.pause();
    const before = runtime.eventListeners();
    const reason = 'x'.repeat(100_000);
    for (let count = 0; count < 200; count += 1) runtime.append({ reason });
    await waitFor(() => runtime.eventListeners() === before - 1);
    expect(runtime.eventListeners()).toBe(before - 1);
  });

  it('keeps the line alive with comments', async () => {
    await start({ keepAliveMs: 10 });
    const comments = await new Promise<string>((resolve) => {
      const url = `http://127.0.0.1:${server.port}/api/events`;
      void fetch(url, { headers: BEARER }).then(async (answer) => {
        let text = '';
        for await (const part of answer.body ?? []) {
          text += Buffer.from(part).toString();
          if (text.includes(': alive')) break;
        }
        resolve(text);
      });
    });
    expect(comments).toContain(': alive\n\n');
  });

  it('refuses the 65th stream instead of falling over', async () => {
    await start();
    for (let count = 0; count < 64; count += 1) await read('/api/events');
    expect((await read('/api/events')).status).toBe(503);
  });
});
