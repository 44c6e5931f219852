import { describe, expect, it } from 'vitest';
import { makeBridge } from '../../shared/ipc-bridge.ts';
import { fitsInto } from '../../shared/ipc-fields.ts';
import {
  type ArgsOf,
  CALL_NAMES,
  type CallName,
  callChannel,
  MAX_ARGS_BYTES,
  PUSH_NAMES,
  readArgs,
} from '../../shared/ipc-schema.ts';

/** Good arguments of every call: it does not compile when one is added and left out here. */
const GOOD: { readonly [Name in CallName]: ArgsOf<Name> } = {
  load: { model: 'router/a', force: false },
  unload: { model: 'router/a', force: true },
  pin: { model: 'router/a' },
  unpin: { model: 'router/a' },
  sleep: { forMs: 7_200_000 },
  wake: {},
  drain: {},
  accept: { offer: 'drain-kill' },
  makeRoom: { freeBytes: 8_000_000_000, deviceId: null },
  restore: {},
  guards: { mode: 'pause', forMs: 900_000, backend: null },
  events: { afterId: null, limit: 200 },
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

const codeOf = (name: CallName, raw: unknown): string => {
  const read = readArgs(name, raw);
  return read.ok ? 'read' : read.error.code;
};

describe('IPC schema: arguments', () => {
  it.each(CALL_NAMES)('reads the arguments of %s as they are', (name) => {
    expect(readArgs(name, GOOD[name])).toEqual({ ok: true, value: GOOD[name] });
  });

  it.each(CALL_NAMES)('refuses %s with what is no object, a field too many, or too much', (name) => {
    for (const raw of [undefined, null, 1, 'x', true, [], [GOOD[name]], new Map(), new Date(0), () => 1, 1n])
      expect(codeOf(name, raw), String(raw)).toBe('bad_input');
    expect(codeOf(name, { ...GOOD[name], extra: 1 })).toBe('bad_input');
    expect(codeOf(name, { ...GOOD[name], model: 'x'.repeat(MAX_ARGS_BYTES) })).toBe('bad_input');
    expect(codeOf(name, { ...GOOD[name], extra: new Array(1e6).fill(0) })).toBe('bad_input');
  });

  it.each(CALL_NAMES)('refuses %s when any one of its fields is missing or of a wrong type', (name) => {
    for (const field of Object.keys(GOOD[name])) {
      const { [field]: _gone, ...rest }: Record<string, unknown> = { ...GOOD[name] };
      expect(codeOf(name, rest), `without ${field}`).toBe('bad_input');
      for (const wrong of [
        undefined,
        {},
        [],
        Number.NaN,
        -1,
        0.5,
        '',
        'x'.repeat(7500),
        Number.POSITIVE_INFINITY,
      ]) {
        expect(codeOf(name, { ...GOOD[name], [field]: wrong }), `${field}: ${String(wrong)}`).toBe(
          'bad_input',
        );
      }
    }
  });

  it('takes no field from a prototype', () => {
    expect(codeOf('pin', Object.create({ model: 'router/a' }))).toBe('bad_input');
    expect(codeOf('wake', JSON.parse('{"__proto__":{"force":true}}'))).toBe('bad_input');
  });

  it('does not repeat what it refuses', () => {
    const read = readArgs('load', { model: 'x'.repeat(1025), force: false });
    expect(read.ok ? '' : read.error.message).toBe('load: model must be a text of 1 to 1024 characters.');
  });
});

describe('IPC schema: sizes', () => {
  it('counts texts, names and depth, and ends with a cycle or a huge list', () => {
    expect(fitsInto({ a: 'x'.repeat(10) }, 100)).toBe(true);
    expect(fitsInto({ a: 'x'.repeat(50) }, 100)).toBe(false);
    expect(fitsInto({ ['x'.repeat(50)]: 1 }, 100)).toBe(false);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(fitsInto(cycle, 10_000)).toBe(false);
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(fitsInto(deep, 10_000)).toBe(false);
    expect(fitsInto(new Uint8Array(4), 10_000)).toBe(false);
  });
});

describe('IPC bridge', () => {
  it('offers each call and each push of the schema and nothing else, on its own channel', async () => {
    const sent: unknown[] = [];
    const bridge = makeBridge({
      invoke: async (channel, args) => {
        sent.push([channel, args]);
        return { ok: true, value: null };
      },
      listen: () => () => {},
    });
    expect(Object.keys(bridge)).toEqual(['call', 'on']);
    expect(Object.keys(bridge.call)).toEqual(CALL_NAMES);
    expect(Object.keys(bridge.on)).toEqual(PUSH_NAMES);
    await bridge.call.pin({ model: 'router/a' });
    expect(sent).toEqual([[callChannel('pin'), { model: 'router/a' }]]);
  });

  it('hands a listener text alone, until it is undone', () => {
    const listeners = new Set<(text: unknown) => void>();
    const bridge = makeBridge({
      invoke: async () => null,
      listen: (_channel, listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    });
    const heard: string[] = [];
    const undo = bridge.on.link((json) => heard.push(json));
    for (const listener of listeners) {
      listener('{}');
      listener({ not: 'text' });
    }
    undo();
    expect(heard).toEqual(['{}']);
    expect(listeners.size).toBe(0);
  });
});
