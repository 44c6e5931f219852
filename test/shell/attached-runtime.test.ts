import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Command } from '../../electron/core/runtime-api.ts';
import { type AttachedRuntime, attachRuntime } from '../../electron/shell/attached-runtime.ts';
import { fail } from '../../shared/errors.ts';
import { sampleState } from '../support/fake-runtime.ts';
import { serveFake, TOKEN } from '../support/serve-fake.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function attached(url: string): Promise<AttachedRuntime> {
  const runtime = await attachRuntime({ url, token: TOKEN, pid: null });
  if (!runtime.ok) throw new Error(runtime.error.message);
  ends.push(() => runtime.value.close());
  return runtime.value;
}

/** A server of a test's own whose stream says what it is told to. */
async function streaming(answer: (response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer((_request, response) => answer(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

const frame = (data: unknown): string => `event: state\ndata: ${JSON.stringify(data)}\n\n`;

describe('attached runtime', () => {
  it('carries every command as the other process takes it, and its refusals with their figures', async () => {
    const { server, runtime } = await serveFake();
    ends.push(() => server.stop());
    const there = await attached(server.url);
    const commands: readonly Command[] = [
      { type: 'load', model: 'router/vision 27b', force: false },
      { type: 'unload', model: 'router/a', force: true },
      { type: 'pin', model: 'router/a' },
      { type: 'unpin', model: 'router/a' },
      { type: 'sleep', forMs: null },
      { type: 'sleep', forMs: 7_200_000 },
      { type: 'wake' },
      { type: 'drain' },
      { type: 'drain', kill: true, restartUnit: true },
      { type: 'accept', offer: 'drain-kill' },
      { type: 'makeRoom', freeBytes: 8_000_000_000, deviceId: 'pci:0000:03:00.0' },
      { type: 'makeRoom', freeBytes: null, deviceId: null },
      { type: 'restore' },
      { type: 'guards', mode: 'pause', forMs: 900_000, backend: null },
      { type: 'guards', mode: 'on', forMs: null, backend: 'router' },
    ];
    for (const command of commands)
      expect(await there.command(command), command.type).toMatchObject({ ok: true });
    expect(runtime.commands).toEqual(commands);
    const denial = fail('vram_denied', 'It does not fit.', { needBytes: 19, freeBytes: null });
    runtime.answer = () => denial;
    expect(await there.command({ type: 'load', model: 'router/a', force: false })).toEqual(denial);
  });

  it('asks for events as they were asked for', async () => {
    const { server, runtime } = await serveFake();
    ends.push(() => server.stop());
    const there = await attached(server.url);
    for (let n = 0; n < 5; n += 1) runtime.append({ kind: n % 2 === 0 ? 'evicted' : 'loaded' });
    const found = await there.events({ afterId: 1, beforeId: 5, kinds: ['evicted'], limit: 10 });
    expect(found.ok && found.value.map((event) => event.id)).toEqual([3]);
    const late = await there.events({ since: Date.UTC(2026, 2, 4, 9, 0, 4) });
    expect(late.ok && late.value.map((event) => event.id)).toEqual([4, 5]);
  });

  it('gives a command up when its asker does', async () => {
    const { server, runtime } = await serveFake();
    ends.push(() => server.stop());
    runtime.answer = () => new Promise(() => {});
    const there = await attached(server.url);
    const giveUp = new AbortController();
    const asked = there.command({ type: 'drain' }, giveUp.signal);
    giveUp.abort();
    expect(await asked).toMatchObject({ ok: false, error: { code: 'cancelled' } });
  });

  it('says why when the token is not taken, nothing listens, or the state has another shape', async () => {
    const { server } = await serveFake();
    ends.push(() => server.stop());
    expect(await attachRuntime({ url: server.url, token: 'x'.repeat(43), pid: null })).toMatchObject({
      error: { code: 'not_permitted' },
    });
    expect(await attachRuntime({ url: 'http://127.0.0.1:1', token: TOKEN, pid: null })).toMatchObject({
      error: { code: 'no_runtime' },
    });
    const older = await streaming((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame({ schema: 'vram-landlord/state/0', revision: 1 }));
    });
    expect(await attachRuntime({ url: older, token: TOKEN, pid: null })).toMatchObject({
      error: { code: 'not_supported' },
    });
    // The same schema, and a list that came later.
    const lacking = await streaming((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const { agents: _later, ...state } = sampleState();
      response.write(frame(state));
    });
    expect(await attachRuntime({ url: lacking, token: TOKEN, pid: null })).toMatchObject({
      error: { code: 'not_supported' },
    });
  });

  it('does not wait for ever: neither for a first state, nor for one more', async () => {
    const silent = await streaming((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    });
    const found = { url: silent, token: TOKEN, pid: null };
    expect(await attachRuntime(found, { firstStateMs: 20 })).toMatchObject({ error: { code: 'no_runtime' } });

    const hanging = await streaming((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame(sampleState()));
    });
    const runtime = await attachRuntime({ ...found, url: hanging }, { silenceMs: 60 });
    if (!runtime.ok) throw new Error(runtime.error.message);
    await new Promise<void>((resolve) => runtime.value.onEnd(resolve));
  });

  it('tells nobody of an end that it was asked for', async () => {
    const { server, runtime } = await serveFake();
    ends.push(() => server.stop());
    const there = await attached(server.url);
    let told = false;
    there.onEnd(() => {
      told = true;
    });
    there.close();
    while (runtime.stateListeners() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(told).toBe(false);
  });
});
