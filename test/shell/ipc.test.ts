import { afterEach, describe, expect, it, vi } from 'vitest';
import { serveIpc } from '../../electron/shell/ipc.ts';
import type { SenderEvent } from '../../electron/shell/ipc-sender.ts';
import { PAGE_URL } from '../../electron/shell/protocol.ts';
import { ok } from '../../shared/errors.ts';
import {
  type ArgsOf,
  CALL_NAMES,
  type CallName,
  callChannel,
  type Done,
  MAX_ARGS_BYTES,
  pushChannel,
  QUESTION_NAMES,
} from '../../shared/ipc-schema.ts';
import { FakeIpcMain, FakeWindow } from '../fakes/electron.ts';
import { createFakeSource, type FakeSource } from '../support/fake-source.ts';

const GOOD: { readonly [Name in CallName]: ArgsOf<Name> } = {
  load: { model: 'router/a', force: false },
  unload: { model: 'router/a', force: true },
  pin: { model: 'router/a' },
  unpin: { model: 'router/a' },
  sleep: { forMs: null },
  wake: {},
  drain: {},
  accept: { offer: 'drain-kill' },
  makeRoom: { freeBytes: null, deviceId: null },
  restore: {},
  guards: { mode: 'observe', forMs: null, backend: null },
  events: { afterId: 2, limit: 10 },
  plan: { model: 'router/a' },
  loadAnyway: { model: 'router/a', always: true },
  history: { fromMs: 1_000, toMs: 601_000, deviceId: null, points: 300 },
  settings: {},
  checkSetting: { key: 'floor', yaml: '4GB' },
  changeSetting: { key: 'floor', yaml: null, fingerprint: null },
  replay: { fromMs: 1_000, deviceId: null, floorBytes: 6_000_000_000, maxBig: 1 },
  observation: {},
  testTurn: { model: 'router/a' },
  addModel: { name: null, file: '/models/a.gguf' },
  forgetAgent: { agent: 'smol' },
  watch: {},
  unwatch: {},
  host: {},
};

interface Desk {
  readonly ipcMain: FakeIpcMain;
  readonly window: FakeWindow;
  readonly source: FakeSource;
  ask(name: CallName, args?: unknown, change?: Partial<SenderEvent>): Promise<unknown>;
  pushes(name: 'state' | 'event' | 'link'): readonly unknown[];
}

function desk(stateIntervalMs = 100): Desk {
  const ipcMain = new FakeIpcMain();
  const window = new FakeWindow({});
  const source = createFakeSource();
  serveIpc({ ipcMain, source: () => source, contents: () => window.webContents, stateIntervalMs });
  return {
    ipcMain,
    window,
    source,
    ask: (name, args = GOOD[name], change = {}) =>
      ipcMain.invoke(window.sender(change), callChannel(name), args),
    pushes: (name) =>
      window.webContents.sent
        .filter(({ channel }) => channel === pushChannel(name))
        .map(({ args }) => JSON.parse(String(args[0]))),
  };
}

const touched = ({ source }: Desk): number =>
  source.runtime.commands.length +
  source.runtime.queries.length +
  source.runtime.asked.length +
  source.hosts +
  source.runtime.stateListeners();

afterEach(() => {
  vi.useRealTimers();
});

describe('IPC: who may ask', () => {
  it('registers one handler for each call of the schema, and no other', () => {
    expect([...desk().ipcMain.handlers.keys()]).toEqual(CALL_NAMES.map(callChannel));
  });

  it.each(CALL_NAMES)(
    'refuses %s from any sender but the page of the window, and does nothing',
    async (name) => {
      const there = desk();
      const senders: Readonly<Record<string, Partial<SenderEvent>>> = {
        'another window': { sender: { id: there.window.webContents.id + 1000 } },
        'a frame that is gone': { senderFrame: null },
        'a page of another origin': { senderFrame: { parent: null, url: 'https://example.com/' } },
        'a page on loopback': { senderFrame: { parent: null, url: 'http://127.0.0.1:7781/' } },
        'a look-alike': { senderFrame: { parent: null, url: 'app://landlord.example.com/' } },
        'a file': { senderFrame: { parent: null, url: 'file:///index.html' } },
        'a blank page': { senderFrame: { parent: null, url: 'about:blank' } },
        'no address': { senderFrame: { parent: null, url: '' } },
      };
      for (const [who, change] of Object.entries(senders)) {
        expect(await there.ask(name, GOOD[name], change), who).toMatchObject({
          ok: false,
          error: { code: 'not_permitted' },
        });
      }
      // An embedded frame with the page's own address.
      const parent = Object.create(null);
      const embedded = { senderFrame: { parent, url: PAGE_URL } };
      expect(await there.ask(name, GOOD[name], embedded)).toMatchObject({ error: { code: 'not_permitted' } });
      // One that goes while it is looked at: Electron throws then.
      const going = {
        get parent(): never {
          throw new Error('Render frame was disposed before WebFrameMain could be accessed');
        },
        url: PAGE_URL,
      };
      expect(await there.ask(name, GOOD[name], { senderFrame: going })).toMatchObject({
        error: { code: 'not_permitted' },
      });
      expect(touched(there)).toBe(0);
    },
  );

  it.each(CALL_NAMES)(
    'refuses %s with a wrong shape, too many arguments or too much, and does nothing',
    async (name) => {
      const there = desk();
      for (const raw of [
        null,
        'x',
        7,
        [],
        { ...GOOD[name], extra: 1 },
        { ...GOOD[name], extra: 'x'.repeat(20_000) },
      ]) {
        expect(await there.ask(name, raw)).toMatchObject({ ok: false, error: { code: 'bad_input' } });
      }
      // Too large by any road: a field too many, a field too long, a list, a value that holds itself.
      const endless: Record<string, unknown> = { ...GOOD[name] };
      endless.extra = endless;
      const [field = 'extra'] = Object.keys(GOOD[name]);
      for (const raw of [
        { ...GOOD[name], [field]: 'x'.repeat(MAX_ARGS_BYTES) },
        { ...GOOD[name], [field]: new Array(100_000).fill(0) },
        { ...GOOD[name], ['x'.repeat(MAX_ARGS_BYTES)]: 1 },
        endless,
      ]) {
        expect(await there.ask(name, raw)).toMatchObject({
          ok: false,
          error: { code: 'bad_input', message: expect.stringContaining('larger than') },
        });
      }
      const two = await there.ipcMain.invoke(there.window.sender(), callChannel(name), GOOD[name], {});
      expect(two).toMatchObject({ ok: false, error: { code: 'bad_input' } });
      const none = await there.ipcMain.invoke(there.window.sender(), callChannel(name));
      expect(none).toMatchObject({ ok: false, error: { code: 'bad_input' } });
      expect(touched(there)).toBe(0);
    },
  );

  it('refuses everything while there is no window, and says so while the runtime starts', async () => {
    const ipcMain = new FakeIpcMain();
    const window = new FakeWindow({});
    let contents: FakeWindow['webContents'] | null = null;
    serveIpc({ ipcMain, source: () => null, contents: () => contents });
    const ask = (): Promise<unknown> => ipcMain.invoke(window.sender(), callChannel('wake'), {});
    expect(await ask()).toMatchObject({ error: { code: 'not_permitted' } });
    contents = window.webContents;
    expect(await ask()).toMatchObject({ error: { code: 'no_runtime' } });
  });
});

describe('IPC: what is asked', () => {
  it('carries each call to the runtime as its command, and the answer back', async () => {
    const there = desk();
    const answer: Done = { message: 'Noted.' };
    there.source.runtime.answers = { loadAnyway: answer };
    for (const name of CALL_NAMES) {
      const asked = QUESTION_NAMES.some((one) => one === name) && name !== 'loadAnyway';
      // The stand-in has no answer to the others, and says so: that comes back as well.
      const expected = asked ? { error: { code: 'not_supported' } } : { ok: true };
      expect(await there.ask(name), name).toMatchObject(expected);
    }
    expect(there.source.runtime.asked).toEqual(
      CALL_NAMES.filter((name) => QUESTION_NAMES.some((one) => one === name)).map((name) => ({
        name,
        args: GOOD[name],
      })),
    );
    expect(there.source.runtime.commands).toEqual([
      { type: 'load', model: 'router/a', force: false },
      { type: 'unload', model: 'router/a', force: true },
      { type: 'pin', model: 'router/a' },
      { type: 'unpin', model: 'router/a' },
      { type: 'sleep', forMs: null },
      { type: 'wake' },
      { type: 'drain' },
      { type: 'accept', offer: 'drain-kill' },
      { type: 'makeRoom', freeBytes: null, deviceId: null },
      { type: 'restore' },
      { type: 'guards', mode: 'observe', forMs: null, backend: null },
    ]);
    expect(there.source.runtime.queries).toEqual([{ afterId: 2, limit: 10 }]);
    expect(there.source.hosts).toBe(1);
  });

  it('pauses guards for a time, and sets no time on what stays until it is changed', async () => {
    const there = desk();
    expect(await there.ask('guards', { mode: 'pause', forMs: 900_000, backend: null })).toMatchObject({
      ok: true,
    });
    expect(await there.ask('guards', { mode: 'on', forMs: 900_000, backend: null })).toMatchObject({
      error: { code: 'bad_input' },
    });
  });

  it('answers with a sentence when something throws, and throws nothing at the page', async () => {
    const there = desk();
    there.source.onHost = async () => {
      throw new Error('disk on fire');
    };
    expect(await there.ask('host')).toMatchObject({
      ok: false,
      error: { code: 'internal', message: expect.stringContaining('disk on fire') },
    });
  });
});

describe('IPC: what is pushed', () => {
  it('sends the link and the present state at once, and nothing before it is asked to', async () => {
    const there = desk();
    there.source.runtime.publish({});
    expect(there.window.webContents.sent).toEqual([]);
    expect(await there.ask('watch')).toEqual(ok(null));
    expect(there.pushes('link')).toEqual([{ kind: 'own', message: 'It is own.' }]);
    expect(there.pushes('state')).toEqual([there.source.runtime.state()]);
  });

  it('sends at most one snapshot per interval, always the newest, and every event', async () => {
    vi.useFakeTimers();
    const there = desk();
    await there.ask('watch');
    for (let n = 0; n < 5; n += 1) {
      there.source.runtime.publish({});
      there.source.runtime.append({});
    }
    expect(there.pushes('state')).toHaveLength(1);
    expect(there.pushes('event')).toHaveLength(5);
    vi.advanceTimersByTime(100);
    expect(there.pushes('state')).toHaveLength(2);
    expect(there.pushes('state').at(-1)).toMatchObject({ revision: 6 });
    vi.advanceTimersByTime(1000);
    expect(there.pushes('state')).toHaveLength(2);
  });

  it('ends when it is told to, when the page watches anew, or when its window is gone', async () => {
    const there = desk();
    await there.ask('watch');
    await there.ask('watch');
    expect(there.source.runtime.stateListeners()).toBe(1);
    await there.ask('unwatch');
    expect(there.source.runtime.stateListeners()).toBe(0);
    await there.ask('watch');
    there.window.webContents.destroyed = true;
    there.source.runtime.append({});
    expect(there.source.runtime.stateListeners()).toBe(0);
    expect(there.pushes('event')).toEqual([]);
  });

  it('says that a runtime is lost, shows no old state for a new one, and the new state once it is back', async () => {
    const there = desk(0);
    await there.ask('watch');
    there.source.changeLink('lost');
    there.source.runtime.publish({});
    await there.ask('watch');
    expect(there.pushes('link').at(-1)).toMatchObject({ kind: 'lost' });
    expect(there.pushes('state')).toHaveLength(1);
    there.source.changeLink('attached');
    expect(there.pushes('state').at(-1)).toEqual(there.source.runtime.state());
  });
});
